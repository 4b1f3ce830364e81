import { promises as fs } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { unpack } from "../bundle/archive.ts";
import { type CompletePolicyData, readData } from "../data.ts";
import { ResumeGuardError } from "../errors.ts";
import type { PolicyData } from "../generated/types.ts";
import { parseJson } from "../nesting.ts";
import { MOMENTS, packagedPolicy } from "../policy.ts";
import type { NamedTable } from "../tables.ts";
import { filesBelow } from "./files.ts";
import { CAPABILITIES, findOpa, GET_OPA, type Opa, runOpa } from "./opa.ts";

/** A file of a policy folder. */
export interface FolderFile {
	/** Below the folder, with `/`. */
	readonly path: string;
	readonly text: string;
}

/** A policy folder as it is written, not yet looked at: see docs/policies.md. */
export interface PolicyFolder {
	readonly dir: string;
	/** `mcp/data.json`. */
	readonly data: FolderFile;
	/** All Rego of the folder itself, tests included. The rest of the policy is in this package. */
	readonly regoFiles: readonly FolderFile[];
	/** `tests/*.json`. */
	readonly tables: readonly FolderFile[];
}

const DATA = "mcp/data.json";
const PACKAGED = fileURLToPath(new URL("../../policies", import.meta.url));

/** @throws {ResumeGuardError} `file_unreadable`: there is no such folder, or no `mcp/data.json` in it */
export async function readPolicyFolder(dir: string): Promise<PolicyFolder> {
	const paths = await filesBelow(dir);
	const read = (path: string) => readText(dir, path);
	return {
		dir,
		data: await read(DATA),
		regoFiles: await Promise.all(paths.filter(isRego).map(read)),
		tables: await Promise.all(paths.filter((path) => /^tests\/.+\.json$/.test(path)).map(read)),
	};
}

/** @throws {ResumeGuardError} `data_invalid`, whose message has the JSON Pointer to the first wrong place */
export async function readPolicyData({ dir, data }: PolicyFolder): Promise<CompletePolicyData> {
	const found = parse(data);
	if ("problem" in found) {
		throw new ResumeGuardError("data_invalid", `the policy data ${join(dir, data.path)} is not JSON`);
	}
	return readData(found.value as PolicyData);
}

/** @throws {ResumeGuardError} `table_invalid`: one is not JSON */
export function readTablesOf({ dir, tables }: PolicyFolder): NamedTable[] {
	return tables.map((file) => {
		const found = parse(file);
		if ("problem" in found) {
			throw new ResumeGuardError("table_invalid", `the table ${join(dir, file.path)} is not JSON`);
		}
		return { name: file.path.slice("tests/".length), document: found.value };
	});
}

/** A file's JSON, or what is wrong with it. */
export function parse({ text }: FolderFile): { readonly value: unknown } | { readonly problem: string } {
	try {
		return { value: parseJson(text) };
	} catch (error) {
		return { problem: error instanceof Error ? error.message : String(error) };
	}
}

/** The rules of the folder that are not those of this package: with none, the Wasm is the one in this package. */
export async function ownRules({ regoFiles }: PolicyFolder): Promise<FolderFile[]> {
	const packaged = new Map((await packagedRules()).map(({ path, text }) => [path, text]));
	return regoFiles.filter(({ path, text }) => {
		const shipped = packaged.get(path);
		return !isTest(path) && (shipped === undefined ? !hasNoRule(text) : shipped !== text);
	});
}

// A file of comments. No string can begin in what is left, so that each line with a `#` in front is a comment.
function hasNoRule(text: string): boolean {
	const code = text.replace(/^[ \t]*#.*$/gm, "");
	return /^\s*package [\w.]+\s*$/.test(code);
}

/** All rules that decide: those of the folder, and those of this package where the folder has no file of that path. */
export async function effectiveRules({ regoFiles }: PolicyFolder): Promise<FolderFile[]> {
	const rules = new Map((await packagedRules()).map((file) => [file.path, file]));
	for (const file of regoFiles) if (!isTest(file.path)) rules.set(file.path, file);
	return [...rules.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The folder's own Rego tests. */
export function regoTests({ regoFiles }: PolicyFolder): FolderFile[] {
	return regoFiles.filter(({ path }) => isTest(path));
}

/**
 * The Wasm that decides as the folder says: the one in this package where the folder has no rules of its own, otherwise
 * one that OPA makes. Policy data is no part of it.
 *
 * @param opa default: the one that is found
 * @throws {ResumeGuardError} `opa_missing`: OPA is needed, and there is none; `policy_invalid`: OPA does not compile it
 */
export async function compilePolicyFolder(folder: PolicyFolder, opa?: Opa): Promise<Uint8Array<ArrayBuffer>> {
	const own = await ownRules(folder);
	if (own.length === 0) return Uint8Array.from(packagedPolicy());
	const found = opa ?? (await findOpa());
	if (found === undefined) {
		const which = own.map(({ path }) => path).join(", ");
		throw new ResumeGuardError("opa_missing", `OPA is needed to compile ${which}: ${GET_OPA}`);
	}
	return inStage(await effectiveRules(folder), async (stage) => {
		const entrypoints = [...MOMENTS].sort().flatMap((moment) => ["-e", `mcp/${moment}/decision`]);
		const args = ["build", "-t", "wasm", "--capabilities", CAPABILITIES, ...entrypoints];
		const { exitCode, stdout, stderr } = await runOpa(found, [...args, "-o", "bundle.tar.gz", RULES], stage);
		if (exitCode !== 0) {
			throw new ResumeGuardError("policy_invalid", `the policy does not compile: ${stderr || stdout}`.trim());
		}
		const wasm = (await unpack(await fs.readFile(join(stage, "bundle.tar.gz")))).get("policy.wasm");
		if (wasm === undefined) throw new ResumeGuardError("policy_invalid", "OPA has made no policy.wasm");
		return Uint8Array.from(wasm);
	});
}

/** Where files are while OPA works on them. */
export const RULES = "policies";

/**
 * Puts files below `policies` into an empty folder, so that OPA sees them as it sees the policies of this package (the
 * same paths make the same Wasm), and nothing else.
 */
export async function inStage<T>(
	files: readonly FolderFile[],
	use: (stage: string) => Promise<T>,
): Promise<T> {
	const stage = await fs.mkdtemp(join(tmpdir(), "mcp-resume-guard-"));
	try {
		for (const { path, text } of files) {
			const file = join(stage, RULES, path);
			await fs.mkdir(dirname(file), { recursive: true });
			await fs.writeFile(file, text);
		}
		return await use(stage);
	} finally {
		await fs.rm(stage, { recursive: true });
	}
}

async function packagedRules(): Promise<FolderFile[]> {
	const paths = (await filesBelow(PACKAGED)).filter((path) => isRego(path) && !isTest(path));
	return Promise.all(paths.map((path) => readText(PACKAGED, path)));
}

function isRego(path: string): boolean {
	return path.endsWith(".rego");
}

function isTest(path: string): boolean {
	return path.endsWith("_test.rego");
}

async function readText(dir: string, path: string): Promise<FolderFile> {
	try {
		// Git may have made it CRLF, which means nothing in Rego and JSON.
		return { path, text: (await fs.readFile(join(dir, path), "utf8")).replaceAll("\r\n", "\n") };
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `${join(dir, path)} cannot be read`, { cause });
	}
}
