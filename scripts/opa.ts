import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { isMain } from "./main.ts";

const run = promisify(execFile);

type Version = readonly [major: number, minor: number, patch: number];

/** The version that `tools/go.mod` pins. */
const pinned = ((): Version => {
	const version = parse(readFileSync("tools/go.mod", "utf8"), /github\.com\/open-policy-agent\/opa v/);
	if (version === undefined) throw new Error("tools/go.mod does not pin OPA");
	return version;
})();
export const pinnedOpa = pinned.join(".");

/**
 * Path of an OPA that fits: the same major version as the pinned one, and not older. `exact`: that very
 * version, as generated files must not change with what a machine has. In this order: `$OPA`, `opa` on PATH, the
 * pinned one as a Go tool (which Go builds on first use, and keeps in its cache).
 *
 * Rejects with one sentence that says what to install.
 */
export function findOpa({ exact = false } = {}): Promise<string> {
	const found = finding.get(exact) ?? find(exact);
	finding.set(exact, found);
	return found;
}

const finding = new Map<boolean, Promise<string>>();

async function find(exact: boolean): Promise<string> {
	const named = process.env.OPA;
	for (const candidate of named ? [named, "opa"] : ["opa"]) {
		const version = await versionOf(candidate);
		if (version !== undefined && fits(version, exact)) return candidate;
		if (candidate === named && !(version !== undefined && fits(version, false))) {
			throw new Error(`$OPA is ${named}, which is not OPA ${pinned[0]}.x from ${pinnedOpa} on.`);
		}
	}
	const goTool = await buildGoTool();
	if ("path" in goTool) return goTool.path;
	throw new Error(
		`OPA ${pinnedOpa}${exact ? "" : " or later"} is needed and was not found: install Go, which then builds it by itself, ` +
			`or put opa on PATH, or its path into $OPA (go tool: ${goTool.failure}).`,
	);
}

/** Runs OPA from the repository root, so that the relative paths given (and what it makes of them) are the same everywhere. Rejects with what OPA says. */
export async function runOpa(args: readonly string[], options?: { exact?: boolean }): Promise<string> {
	const opa = await findOpa(options);
	try {
		return (await run(opa, args, { maxBuffer: 1 << 28 })).stdout;
	} catch (error) {
		const { stdout, stderr } = error as { stdout?: string; stderr?: string };
		throw new Error(`opa ${args[0]}: ${stderr || stdout || String(error)}`, { cause: error });
	}
}

async function versionOf(opa: string): Promise<Version | undefined> {
	try {
		return parse((await run(opa, ["version"])).stdout, /^Version: /m);
	} catch {
		return undefined;
	}
}

function parse(text: string, prefix: RegExp): Version | undefined {
	const match = new RegExp(`${prefix.source}(\\d+)\\.(\\d+)\\.(\\d+)`, prefix.flags).exec(text);
	return match ? [Number(match[1]), Number(match[2]), Number(match[3])] : undefined;
}

function fits([major, minor, patch]: Version, exact: boolean): boolean {
	const [pinnedMajor, pinnedMinor, pinnedPatch] = pinned;
	if (major !== pinnedMajor) return false;
	if (exact) return minor === pinnedMinor && patch === pinnedPatch;
	return minor > pinnedMinor || (minor === pinnedMinor && patch >= pinnedPatch);
}

/** `go -C tools` would also run OPA there; so Go only builds it and says where it is. The first time it answers with the place of the build, which is gone when it ends. */
async function buildGoTool(): Promise<{ path: string } | { failure: string }> {
	try {
		const ask = async () => (await run("go", ["-C", "tools", "tool", "-n", "opa"])).stdout.trim();
		await ask();
		return { path: await ask() };
	} catch (error) {
		const { code, stderr } = error as { code?: unknown; stderr?: string };
		if (code === "ENOENT") return { failure: "no go on PATH" };
		return { failure: stderr?.trim().split("\n").at(-1) ?? String(error) };
	}
}

if (isMain(import.meta.url)) {
	const opa = await findOpa().catch((error: Error) => {
		console.error(error.message);
		process.exit(1);
	});
	spawn(opa, process.argv.slice(2), { stdio: "inherit" }).on("exit", (code) => process.exit(code ?? 1));
}
