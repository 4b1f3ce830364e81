import { readFileSync } from "node:fs";
import type { Mutant } from "./mutant.ts";

/** A mutant that nobody can tell from the original, and why. */
export interface Equivalent
	extends Pick<Mutant, "file" | "within" | "operator" | "original" | "replacement"> {
	/** Which of several that are the same in all of the above. Default: the first. */
	readonly nth?: number;
	readonly reason: string;
}

const path = "scripts/mutate/equivalent.json";

export function readEquivalents(): Equivalent[] {
	return JSON.parse(readFileSync(path, "utf8")) as Equivalent[];
}

// White space is for people.
function flat(text: string): string {
	return text.replace(/\s+/g, " ").trim();
}

export function isOf({ nth = 0, ...entry }: Equivalent, mutant: Mutant): boolean {
	return (
		entry.file === mutant.file &&
		entry.within === mutant.within &&
		entry.operator === mutant.operator &&
		flat(entry.original) === flat(mutant.original) &&
		flat(entry.replacement) === flat(mutant.replacement) &&
		nth === mutant.nth
	);
}

/** As it is written down. */
export function entryOf({ file, within, operator, original, replacement, nth }: Mutant): object {
	const entry = { file, within, operator, original: flat(original), replacement: flat(replacement) };
	return nth === 0 ? entry : { ...entry, nth };
}
