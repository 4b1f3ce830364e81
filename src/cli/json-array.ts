import { isUtf8 } from "node:buffer";
import type { Line } from "./lines.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);
const [ARRAY, ARRAY_END] = [0x5b, 0x5d];
const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Splits JSON arrays, one after another, into the texts of their elements, without keeping more than one of them. The
 * elements that a chunk completes come together. An element that is longer than the limit is not kept.
 *
 * @param limit bytes
 */
export async function* splitArrays(chunks: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<Line[]> {
	let isInArray = false;
	let isInElement = false;
	let isInString = false;
	let isEscaped = false;
	/** How many objects and arrays are open within the element. */
	let nesting = 0;
	let kept: Buffer[] = [];
	let length = 0;

	function keep(part: Buffer): void {
		length += part.length;
		if (length <= limit) kept.push(Buffer.from(part));
		else kept = [];
	}

	function complete(): Line {
		const bytes = Buffer.concat(kept);
		const isTooLong = length > limit;
		kept = [];
		length = 0;
		isInElement = false;
		if (isTooLong) return { problem: `longer than ${limit} bytes` };
		return isUtf8(bytes) ? { text: bytes.toString() } : { problem: "not UTF-8" };
	}

	for await (const { buffer, byteOffset, byteLength } of chunks) {
		const chunk = Buffer.from(buffer, byteOffset, byteLength);
		const elements: Line[] = [];
		let start = 0;
		for (let at = 0; at < chunk.length; at++) {
			const byte = chunk[at] ?? 0;
			if (isInString) {
				if (isEscaped) isEscaped = false;
				else if (byte === BACKSLASH) isEscaped = true;
				else if (byte === QUOTE) isInString = false;
				continue;
			}
			if (!isInElement) {
				if (SPACE.has(byte)) continue;
				if (!isInArray) {
					if (byte !== ARRAY) {
						// Where the next array would begin cannot be known.
						elements.push({ problem: "not a JSON array; the rest cannot be read" });
						yield elements;
						return;
					}
					isInArray = true;
					continue;
				}
				if (byte === ARRAY_END) {
					isInArray = false;
					continue;
				}
				if (byte === COMMA) continue;
				isInElement = true;
				start = at;
			} else if (nesting === 0 && (byte === COMMA || byte === ARRAY_END || SPACE.has(byte))) {
				keep(chunk.subarray(start, at));
				elements.push(complete());
				if (byte === ARRAY_END) isInArray = false;
				continue;
			}
			if (byte === QUOTE) isInString = true;
			else if (OPENING.has(byte)) nesting += 1;
			else if (CLOSING.has(byte)) nesting -= 1;
			if (nesting < 0) nesting = 0;
		}
		if (isInElement) keep(chunk.subarray(start));
		if (elements.length > 0) yield elements;
	}
	if (isInElement || isInArray) yield [{ problem: "the array has no end" }];
}
