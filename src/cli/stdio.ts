import type { Readable, Writable } from "node:stream";

/** Where a command reads and writes: the streams of a process, or others. */
export interface Stdio {
	readonly stdin: Readable;
	readonly stdout: Writable;
	readonly stderr: Writable;
}
