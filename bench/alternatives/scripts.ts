import { execFile } from "node:child_process";
import { execPath } from "node:process";
import { promisify } from "node:util";
import { build } from "esbuild";

const run = promisify(execFile);

const SOURCES = "bench/alternatives";
/** Beside the packages that they import. */
const FOLDER = "node_modules/.cache/mcp-resume-guard/alternatives";

/** As JavaScript, which is what a host runs: tsx names every closure when it is made, and loads slowly. */
export async function buildScripts(names: readonly string[]): Promise<void> {
	await build({
		entryPoints: names.map((name) => `${SOURCES}/${name}.ts`),
		outdir: FOLDER,
		outbase: SOURCES,
		outExtension: { ".js": ".mjs" },
		bundle: true,
		packages: "external",
		platform: "node",
		target: "node20",
		format: "esm",
	});
}

/** Runs a script in a process of its own; resolves with what it prints. */
export async function runScript(
	name: string,
	{ flags = [], args = [] }: { flags?: readonly string[]; args?: readonly string[] } = {},
): Promise<string> {
	const { stdout } = await run(execPath, [...flags, `${FOLDER}/${name}.mjs`, ...args]);
	return stdout.trimEnd();
}
