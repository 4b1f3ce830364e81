import { ResumeGuardError } from "../errors.ts";

/**
 * Reads a file, no more of it than may be.
 *
 * @param what for the message: `the policy`
 * @param limit bytes
 * @param tooLarge makes the error for a larger one
 * @throws {ResumeGuardError} `file_unreadable`, and what `tooLarge` makes
 */
export async function readBounded(
	path: string,
	what: string,
	limit: number,
	tooLarge: () => ResumeGuardError,
): Promise<Uint8Array> {
	const { open, stat } = (await import("node:fs")).promises;
	const chunks: Uint8Array[] = [];
	let total = 0;
	try {
		// To open a pipe would be to wait for its writer.
		if (!(await stat(path)).isFile()) throw new Error("it is no file");
		const file = await open(path);
		// Bytes from 0 to `limit`, so one more than there may be.
		for await (const chunk of file.createReadStream({ end: limit })) {
			chunks.push(chunk);
			total += chunk.length;
		}
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `${what} ${path} cannot be read`, { cause });
	}
	if (total > limit) throw tooLarge();
	return Buffer.concat(chunks);
}

/** Changes when one of the files does, also if another is put in its place, or its link leads elsewhere. */
export async function stateOf(paths: readonly string[]): Promise<string> {
	const { stat } = (await import("node:fs")).promises;
	const states = paths.map(async (path) => {
		try {
			const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
			return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
		} catch (error) {
			return String((error as NodeJS.ErrnoException).code);
		}
	});
	return (await Promise.all(states)).join("\n");
}
