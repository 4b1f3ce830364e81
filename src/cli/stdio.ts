import type { Readable, Writable } from "node:stream";

/** Where a command reads and writes: the streams of a process, or others. */
export interface Stdio {
	readonly stdin: Readable;
	readonly stdout: Writable;
	readonly stderr: Writable;
}

/** Resolves when the text has gone out: to `false` if nobody reads it any more. */
export function write(stream: Writable, text: string): Promise<boolean> {
	return new Promise((resolve, reject) => {
		stream.write(text, (error: NodeJS.ErrnoException | null | undefined) => {
			if (error == null) resolve(true);
			else if (error.code === "EPIPE") resolve(false);
			else reject(error);
		});
	});
}
