/** One change to one file. */
export interface Mutant {
	/** From the repository root. */
	readonly file: string;
	/** The rule or function that it is in. */
	readonly within: string;
	/** What is done, in a word or two. */
	readonly operator: string;
	readonly original: string;
	readonly replacement: string;
	/** Which of those that are the same in all of the above, from 0. */
	readonly nth: number;
	readonly line: number;
	/** The whole text of the file with the change in it. */
	readonly text: string;
}

/** A change, before it is told from others like it. */
export interface Change extends Pick<Mutant, "within" | "operator" | "replacement"> {
	readonly start: number;
	readonly end: number;
}

/** Mutants of changes to a text, each different one once. */
export function mutantsOf(file: string, text: string, changes: readonly Change[]): Mutant[] {
	const counts = new Map<string, number>();
	const texts = new Set([text]);
	return [...changes]
		.sort((a, b) => a.start - b.start)
		.flatMap(({ within, operator, replacement, start, end }) => {
			const mutated = text.slice(0, start) + replacement + text.slice(end);
			if (texts.has(mutated)) return [];
			texts.add(mutated);
			const original = text.slice(start, end);
			const key = JSON.stringify([within, operator, original, replacement]);
			const nth = counts.get(key) ?? 0;
			counts.set(key, nth + 1);
			const line = text.slice(0, start).split("\n").length;
			return [{ file, within, operator, original, replacement, nth, line, text: mutated }];
		});
}

/** On one line, for people. */
export function describeMutant({ file, within, line, operator, original, replacement }: Mutant): string {
	const short = (text: string) => {
		const flat = text.replace(/\s+/g, " ");
		return flat.length > 90 ? `${flat.slice(0, 87)}…` : flat;
	};
	return `${file}:${line} ${within}: ${operator}: ${short(original)} → ${short(replacement) || "(nothing)"}`;
}
