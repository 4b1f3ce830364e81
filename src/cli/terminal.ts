import type { Writable } from "node:stream";

/** What a stream says of itself, if it is a terminal. */
interface Terminal {
	readonly isTTY?: boolean;
	readonly columns?: number;
	hasColors?(): boolean;
}

const WIDTH = 100;
const NARROWEST = 40;
const WIDEST = 160;

/** Colours on a terminal alone, and not where `NO_COLOR` is set (https://no-color.org). */
export function terminalOf(stream: Writable): { readonly width: number; readonly colour: boolean } {
	const { isTTY = false, columns = 0 } = stream as Terminal;
	const colour = isTTY && !process.env.NO_COLOR && (stream as Terminal).hasColors?.() === true;
	const width = isTTY && columns > 0 ? Math.min(WIDEST, Math.max(NARROWEST, columns)) : WIDTH;
	return { width, colour };
}
