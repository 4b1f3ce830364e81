import { z } from "zod";
import { ResumeGuardError } from "../errors.ts";

/** The lowest sequence that a bundle may still have: the highest that was active. */
export interface Floor {
	/** @throws {ResumeGuardError} `bundle_outdated`; `file_unreadable`: nobody knows what it was */
	check(sequence: number | undefined): Promise<void>;
	/** @throws {ResumeGuardError} `file_unwritable`: it would be forgotten at the next start */
	raise(sequence: number | undefined): Promise<void>;
}

const schema = z.object({ sequence: z.int().min(0) });

/**
 * Keeps the floor in a file, written as a whole or not at all. A file that is not there yet is no floor; one that
 * cannot be read is no reason to take any bundle.
 *
 * @param path `undefined`: there is no floor
 */
export function createFloor(path: string | undefined): Floor {
	if (path === undefined) return { async check() {}, async raise() {} };
	// Whoever removes the file of a running host does not turn it back.
	let highest = -1;

	return {
		async check(sequence) {
			if (sequence === undefined) throw outdated("it has no sequence");
			highest = Math.max(highest, (await read(path)) ?? -1);
			if (sequence < highest) throw outdated(`its sequence is ${sequence}, and ${highest} was active`);
		},
		async raise(sequence = 0) {
			if (((await read(path)) ?? -1) < sequence) await write(path, sequence);
			highest = Math.max(highest, sequence);
		},
	};
}

async function read(path: string): Promise<number | undefined> {
	const { readFile } = (await import("node:fs")).promises;
	try {
		return schema.parse(JSON.parse(await readFile(path, "utf8"))).sequence;
	} catch (cause) {
		if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw new ResumeGuardError("file_unreadable", `the floor ${path} cannot be read`, { cause });
	}
}

async function write(path: string, sequence: number): Promise<void> {
	const { open, rename, rm } = (await import("node:fs")).promises;
	const temporary = `${path}.${crypto.randomUUID()}.tmp`;
	try {
		const file = await open(temporary, "wx", 0o600);
		try {
			await file.writeFile(`${JSON.stringify({ sequence })}\n`);
			await file.sync();
		} finally {
			await file.close();
		}
		await rename(temporary, path);
	} catch (cause) {
		await rm(temporary, { force: true });
		throw new ResumeGuardError("file_unwritable", `the floor ${path} cannot be written`, { cause });
	}
}

function outdated(why: string): ResumeGuardError {
	return new ResumeGuardError("bundle_outdated", `the bundle is older than it may be: ${why}`);
}
