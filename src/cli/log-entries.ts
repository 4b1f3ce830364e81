import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { splitArrays } from "./json-array.ts";
import { type Line, splitLines } from "./lines.ts";

/** An entry of a log, and where it is: `line 7`, or `element 7` of an array. */
export type LogEntry = Line & { readonly place: string };

/** A record has at most the facts of one decision. */
const LONGEST = 16 * 1024 * 1024;

const BOM = [0xef, 0xbb, 0xbf];
const ARRAY = 0x5b;

/**
 * Reads a log however it was kept: JSON lines, or arrays of JSON as OPA uploads them, compressed with gzip or not. Never
 * keeps more than one entry; empty lines are none. What ends in the middle ends with an entry that says so.
 */
export async function* readLog(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<LogEntry[]> {
	let count = 0;
	let noun = "line";
	try {
		const plain = await inflated(chunks);
		const isArray = isWhitespaceThen(plain.head, ARRAY);
		noun = isArray ? "element" : "line";
		const entries = isArray ? splitArrays(plain.all, LONGEST) : splitLines(plain.all, LONGEST);
		for await (const batch of entries) {
			const named = batch.map((entry): LogEntry => {
				count += 1;
				return { ...entry, place: `${noun} ${count}` };
			});
			yield named.filter((entry) => !("text" in entry && entry.text.trim() === ""));
		}
	} catch (error) {
		if (!isOfGzip(error)) throw error;
		yield [{ place: `after ${noun} ${count}`, problem: `the gzip file is not whole (${error.code})` }];
	}
}

interface Opened {
	/** The first bytes, as many as it takes to tell what it is. */
	readonly head: Buffer;
	readonly all: AsyncIterable<Uint8Array>;
}

async function inflated(chunks: AsyncIterable<Uint8Array>): Promise<Opened> {
	const raw = await opened(chunks);
	// RFC 1952 section 2.3.1.
	if (raw.head[0] !== 0x1f || raw.head[1] !== 0x8b) return raw;
	const gunzip = createGunzip();
	// An error ends the reading below, too.
	pipeline(raw.all, gunzip, () => {});
	return opened(gunzip);
}

async function opened(chunks: AsyncIterable<Uint8Array>): Promise<Opened> {
	const iterator = chunks[Symbol.asyncIterator]();
	let head = Buffer.alloc(0);
	while (head.length < 4 || head.every(isSpace)) {
		const { done, value } = await iterator.next();
		if (done === true) break;
		// However much white space there is, a little of it says enough.
		head = Buffer.concat([head.every(isSpace) ? head.subarray(-4) : head, value]);
	}
	const text = BOM.every((byte, index) => head[index] === byte) ? head.subarray(BOM.length) : head;
	async function* all(): AsyncGenerator<Uint8Array> {
		try {
			yield text;
			for (;;) {
				const { done, value } = await iterator.next();
				if (done === true) return;
				yield value;
			}
		} finally {
			await iterator.return?.();
		}
	}
	return { head: text, all: all() };
}

function isSpace(byte: number): boolean {
	return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

function isWhitespaceThen(bytes: Buffer, wanted: number): boolean {
	return bytes.find((byte) => !isSpace(byte)) === wanted;
}

function isOfGzip(error: unknown): error is NodeJS.ErrnoException {
	return error instanceof Error && /^Z_/.test((error as NodeJS.ErrnoException).code ?? "");
}
