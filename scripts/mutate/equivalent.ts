import { readFileSync } from "node:fs";
import type { Mutant } from "./mutant.ts";

/** A mutant as it is written down. */
export interface Entry extends Pick<Mutant, "file" | "within" | "operator" | "original" | "replacement"> {
	/** Which of several that are the same in all of the above. Default: the first. */
	readonly nth?: number;
}

/** A mutant that nobody can tell from the original, and why. */
export interface Equivalent extends Entry {
	readonly reason: string;
}

export function readEquivalents(): Equivalent[] {
	return readEntries("scripts/mutate/equivalent.json") as Equivalent[];
}

export function readEntries(path: string): Entry[] {
	return JSON.parse(readFileSync(path, "utf8")) as Entry[];
}

// White space is for people.
function flat(text: string): string {
	return text.replace(/\s+/g, " ").trim();
}

export function isOf({ nth = 0, ...entry }: Entry, mutant: Mutant): boolean {
	return (
		entry.file === mutant.file &&
		entry.within === mutant.within &&
		entry.operator === mutant.operator &&
		flat(entry.original) === flat(mutant.original) &&
		flat(entry.replacement) === flat(mutant.replacement) &&
		nth === mutant.nth
	);
}

export function entryOf({ file, within, operator, original, replacement, nth }: Mutant): Entry {
	const entry = { file, within, operator, original: flat(original), replacement: flat(replacement) };
	return nth === 0 ? entry : { ...entry, nth };
}
