import type { Writable } from "node:stream";
import { styleText } from "node:util";
import { terminalOf } from "./terminal.ts";

/** Colours on a terminal, and the text as it is everywhere else. */
export type Style = (format: "red" | "green" | "yellow" | "dim" | "bold", text: string) => string;

export function styleOf(stream: Writable): Style {
	if (!terminalOf(stream).colour) return (_, text) => text;
	return (format, text) => styleText(format, text, { validateStream: false });
}
