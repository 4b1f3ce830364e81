import { createReadStream, promises as fs } from "node:fs";
import { join } from "node:path";
import { ResumeGuardError } from "../errors.ts";

/**
 * The paths of all files below a folder, with `/` and sorted; not what is hidden, and not what is installed.
 *
 * @throws {ResumeGuardError} `file_unreadable`
 */
export function filesBelow(dir: string): Promise<string[]> {
	return walk(dir, "", []);
}

/**
 * The bytes of a file.
 *
 * @param what what to call it: "the log"
 * @throws {ResumeGuardError} `file_unreadable`
 */
export async function* readBytes(path: string, what: string): AsyncGenerator<Uint8Array> {
	try {
		yield* createReadStream(path);
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `${what} ${path} cannot be read`, { cause });
	}
}

/** @throws {ResumeGuardError} `file_unwritable` */
export async function writeTo(path: string, content: string, mode?: number): Promise<void> {
	try {
		await fs.writeFile(path, content, mode === undefined ? {} : { mode });
	} catch (cause) {
		throw new ResumeGuardError("file_unwritable", `${path} cannot be written`, { cause });
	}
}

async function walk(dir: string, below: string, above: readonly string[]): Promise<string[]> {
	const { real, names } = await readFolder(join(dir, below));
	// A link may lead back to where it is.
	if (above.includes(real)) return [];
	const paths: string[] = [];
	for (const name of names.sort()) {
		if (name.startsWith(".") || name === "node_modules") continue;
		const path = below + name;
		// Follows links, which is how a mounted folder may have its files.
		const found = await fs.stat(join(dir, path)).catch(() => undefined);
		if (found?.isDirectory()) paths.push(...(await walk(dir, `${path}/`, [...above, real])));
		else if (found?.isFile()) paths.push(path);
	}
	return paths;
}

async function readFolder(path: string): Promise<{ real: string; names: string[] }> {
	try {
		return { real: await fs.realpath(path), names: await fs.readdir(path) };
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `the folder ${path} cannot be read`, { cause });
	}
}
