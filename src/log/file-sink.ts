import { constants, promises } from "node:fs";
import { ResumeGuardError } from "../errors.ts";
import type { DecisionLogEntry } from "./record.ts";
import type { DecisionLogSink } from "./sink.ts";

export interface FileSinkOptions {
	/** Of a file that is created. Default: 0o600. */
	readonly mode?: number;
}

/**
 * Appends records to a file as JSON lines. A file that has been moved or removed, as by logrotate, is created again at
 * the next record. A symbolic link is not followed: whoever may write to the folder could make it any file.
 */
export function fileSink(path: string, { mode = 0o600 }: FileSinkOptions = {}): DecisionLogSink {
	if (typeof path !== "string" || path === "")
		throw new TypeError("fileSink: `path` must be the path of a file");
	let handle: promises.FileHandle | undefined;
	let isBusy = false;
	/** What has been written of a line that is not complete. */
	let torn: { readonly entry: DecisionLogEntry; readonly offset: number } | undefined;

	async function opened(): Promise<promises.FileHandle> {
		if (handle !== undefined && !(await isStill(handle, path))) await closeFile();
		if (handle !== undefined) return handle;
		const { O_APPEND, O_CREAT, O_RDWR, O_NOFOLLOW, O_NONBLOCK } = constants;
		// Not blocked by a pipe that nobody reads; of a regular file it says nothing.
		const file = await promises.open(
			path,
			O_APPEND | O_CREAT | O_RDWR | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0),
			mode,
		);
		try {
			await endLine(file);
		} catch (error) {
			await file.close();
			throw error;
		}
		torn = undefined;
		handle = file;
		return file;
	}

	async function closeFile(): Promise<void> {
		const of = handle;
		handle = undefined;
		await of?.close();
	}

	async function append(entries: readonly DecisionLogEntry[]): Promise<number> {
		const file = await opened();
		const lines = entries.map(({ json }) => Buffer.from(`${json}\n`));
		const skip = torn !== undefined && torn.entry === entries[0] ? torn.offset : 0;
		const bytes = Buffer.concat(lines).subarray(skip);
		let done = 0;
		let failure: unknown;
		while (done < bytes.byteLength && failure === undefined) {
			try {
				done += (await file.write(bytes, done)).bytesWritten;
			} catch (error) {
				failure = error;
			}
		}
		torn = undefined;
		let end = skip + done;
		const taken = lines.findIndex((line) => {
			if (end < line.byteLength) return true;
			end -= line.byteLength;
			return false;
		});
		if (taken === -1) return entries.length;
		const entry = entries[taken];
		if (entry !== undefined && end > 0) torn = { entry, offset: end };
		if (taken === 0) throw failure;
		return taken;
	}

	return {
		name: "file",
		async write(entries) {
			// A file system that hangs must not have a thread for each try.
			if (isBusy) throw unavailable("an earlier write to the decision log's file has not ended");
			isBusy = true;
			try {
				return await append(entries);
			} catch (cause) {
				const { code } = (cause ?? {}) as { code?: unknown };
				throw unavailable(`the decision log's file cannot be written (${String(code ?? "unknown")})`, cause);
			} finally {
				isBusy = false;
			}
		},
		close: closeFile,
	};
}

function unavailable(message: string, cause?: unknown): ResumeGuardError {
	return new ResumeGuardError("log_unavailable", message, { cause });
}

async function isStill(handle: promises.FileHandle, path: string): Promise<boolean> {
	const [of, at] = await Promise.all([handle.stat(), promises.stat(path).catch(() => undefined)]);
	return at !== undefined && of.ino === at.ino && of.dev === at.dev;
}

// Whoever wrote before may have been ended in the middle of a line.
async function endLine(handle: promises.FileHandle): Promise<void> {
	const of = await handle.stat();
	if (!of.isFile()) throw Object.assign(new Error("not a file"), { code: "ENOTFILE" });
	if (of.size === 0) return;
	const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, of.size - 1);
	if (bytesRead === 1 && buffer[0] !== 0x0a) await handle.write("\n");
}
