import { isUtf8 } from "node:buffer";

/** A line without its line feed, or why it is none. */
export type Line = { readonly text: string } | { readonly problem: string };

const LINE_FEED = 0x0a;

/**
 * Splits bytes into lines of UTF-8; the last one needs no line feed. The lines that a chunk completes come together.
 * A line that is longer than the limit is not kept, so that memory is bounded whatever comes.
 *
 * @param limit bytes
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<Line[]> {
	let kept = Buffer.alloc(0);
	/** Of the line that is not yet complete, kept or not. */
	let length = 0;

	function keep(part: Buffer): void {
		const total = length + part.length;
		if (total <= limit) {
			if (total > kept.length) {
				const larger = Buffer.alloc(Math.min(limit, Math.max(total, 2 * kept.length)));
				kept.copy(larger, 0, 0, length);
				kept = larger;
			}
			part.copy(kept, length);
		}
		length = total;
	}

	function complete(part: Buffer): Line {
		const isWithinChunk = length === 0;
		if (!isWithinChunk) keep(part);
		const bytes = isWithinChunk ? part : kept.subarray(0, length);
		const isTooLong = (isWithinChunk ? part.length : length) > limit;
		length = 0;
		if (isTooLong) return { problem: `longer than ${limit} bytes` };
		return isUtf8(bytes) ? { text: bytes.toString() } : { problem: "not UTF-8" };
	}

	for await (const { buffer, byteOffset, byteLength } of chunks) {
		const chunk = Buffer.from(buffer, byteOffset, byteLength);
		const lines: Line[] = [];
		let start = 0;
		for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
			lines.push(complete(chunk.subarray(start, end)));
			start = end + 1;
		}
		keep(chunk.subarray(start));
		if (lines.length > 0) yield lines;
	}
	if (length > 0) yield [complete(Buffer.alloc(0))];
}
