import { promises as fs } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { ResumeGuardError } from "../errors.ts";
import { jsonLine } from "../explain/index.ts";
import { visible } from "../testing/text.ts";
import type { Shell } from "./command.ts";
import { filesBelow } from "./files.ts";
import { write } from "./stdio.ts";

const help = `
DIR gets policy data, a rule file and its test, a decision table, a CI snippet
and a README. What is there already is left alone.

Exit code: 0 if all files were written; 2 if one of them is there already (then
none is written), or cannot be written.
`;

export function registerInit(program: Command, { stdio, exit }: Shell): void {
	program
		.command("init")
		.description("make a policy folder to start from")
		.argument("<dir>", "the folder")
		.option("--json", "list what was written as JSON")
		.addHelpText("after", help)
		.action(async (dir: string, { json }: { json?: true }) => {
			const created = await init(dir);
			const lines = [...created.map((path) => `created ${visible(join(dir, path))}`), "", next(dir)];
			await write(stdio.stdout, json ? `${jsonLine({ dir, created })}\n` : lines.join("\n"));
			exit(0);
		});
}

function next(dir: string): string {
	return `Next: edit ${visible(join(dir, "mcp/data.json"))}, and run \`npx mcp-resume-guard test ${visible(dir)}\`.\n`;
}

const ROOT = new URL("../../", import.meta.url);

/**
 * Writes a policy folder to start from.
 *
 * @returns the paths of the files, below the folder
 * @throws {ResumeGuardError} `file_unwritable`: a file is there already, and then none is written; or one cannot be written
 */
export async function init(dir: string): Promise<string[]> {
	const files = await starter(dir);
	const there = await Promise.all(files.map(({ path }) => isThere(join(dir, path))));
	const taken = files.filter((_, index) => there[index]).map(({ path }) => join(dir, path));
	if (taken.length > 0) {
		throw new ResumeGuardError("file_unwritable", `${taken.join(", ")}: there already; nothing was written`);
	}
	for (const { path, text } of files) {
		const file = join(dir, path);
		try {
			await fs.mkdir(dirname(file), { recursive: true });
			await fs.writeFile(file, text, { flag: "wx" });
		} catch (cause) {
			throw new ResumeGuardError("file_unwritable", `${file} cannot be written`, { cause });
		}
	}
	return files.map(({ path }) => path);
}

async function starter(dir: string): Promise<{ path: string; text: string }[]> {
	const template = fileURLToPath(new URL("templates/policy", ROOT));
	const { version } = JSON.parse(await read("package.json")) as { version: string };
	const files = (await filesBelow(template)).map(async (path) => {
		const text = await fs.readFile(join(template, path), "utf8");
		return { path, text: path.endsWith(".rego") ? text : fill(path, text, dir, version) };
	});
	// Policy data to start from is what the packaged tables are about, too.
	const data = { path: "mcp/data.json", text: await read("policies/mcp/data.json") };
	return (await Promise.all([data, ...files])).sort((a, b) => (a.path < b.path ? -1 : 1));
}

// In YAML a JSON string is one, whatever is in it.
function fill(path: string, text: string, dir: string, version: string): string {
	const shown = isAbsolute(dir) ? basename(dir) : dir;
	if (path.endsWith(".yaml")) {
		return text
			.replace("POLICY: DIR", () => `POLICY: ${JSON.stringify(shown)}`)
			.replaceAll("VERSION", () => version);
	}
	return path.endsWith(".md") ? text.replaceAll("DIR", () => shown) : text;
}

function read(path: string): Promise<string> {
	return fs.readFile(new URL(path, ROOT), "utf8");
}

async function isThere(path: string): Promise<boolean> {
	// A link that leads nowhere is there, too.
	return fs.lstat(path).then(
		() => true,
		(error: NodeJS.ErrnoException) => {
			if (error.code === "ENOENT") return false;
			throw new ResumeGuardError("file_unwritable", `${path} cannot be written`, { cause: error });
		},
	);
}
