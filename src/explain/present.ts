import type { Claim, Events, Explanation, Row, Run, Subject } from "./explanation.ts";
import { lackOf, lacksSomething } from "./rows.ts";
import { nameOfSubject, purposeOf } from "./subject.ts";
import { counted, inAscii, quote, visible } from "./visible.ts";

// What the page and the terminal both show, in words.

/** More runs than this are told as a number. */
export const MOST_RUNS = 40;

/** The runs that are shown: the first ones, and the one that is held. */
export function shownRuns({ runs }: Events): { readonly shown: readonly Run[]; readonly left: number } {
	const shown = runs.filter(({ held }, index) => index < MOST_RUNS || held);
	return { shown, left: runs.length - shown.length };
}

export function shownOpen({ open }: Events): { readonly shown: readonly Subject[]; readonly left: number } {
	const shown = open.filter(({ held }, index) => index < MOST_RUNS || held);
	return { shown, left: open.length - shown.length };
}

/** `42`, or `42 and 5 after it`. */
export function eventsOfRun({ first, count }: Run): string {
	return count === 1 ? quote(first, 80) : `${quote(first, 80)} and ${count - 1} after it`;
}

/** A call by its name, and its request where it has one. */
export function subjectNameOf(subject: Subject): string {
	return nameOfSubject(subject).replace(/,$/, "");
}

export function needOf({ need }: Subject): string {
	return need === undefined ? "the policy did not say" : lackOf(need);
}

/** Whether the token covers it, in words. */
export function coverOf({ missing }: Subject): string {
	if (missing === undefined) return "the policy did not say";
	return lacksSomething(missing) ? `lacks ${lackOf(missing)}` : "covered";
}

export function purposeOfRun(run: Run): string {
	return run.mixed ? `${purposeOf(run)}, with needs of before` : purposeOf(run);
}

export function cursorOf({ cursor }: Events): string {
	return cursor.before === cursor.after
		? `The cursor stays at ${quote(cursor.before, 80)}.`
		: `The cursor moves from ${quote(cursor.before, 80)} to ${quote(cursor.after, 80)}.`;
}

export function countsOf({ count, deliver, position }: Events): string {
	if (position !== "retained" && count === 0)
		return `The cursor is ${position}: there are no events to show.`;
	if (count === 0) return "Nothing is pending.";
	return `${deliver} of ${counted(count, "pending event")} ${deliver === 1 ? "goes" : "go"} out.`;
}

/** `equal`, `narrower`, …, and that it breaks the session if it does. */
export function relationOf({ relation, allowed }: Claim): string {
	if (relation === undefined) return "";
	return allowed ? relation : `${relation}: not allowed`;
}

/** The two values of a claim; in ASCII where they differ, as they may look alike. */
export function valuesOf({ relation, recorded, presented }: Claim): {
	readonly recorded: readonly string[];
	readonly presented: readonly string[];
} {
	const show = (value: unknown): string[] => {
		const lines = linesOf(value);
		return relation === "differs" ? lines.map(inAscii) : lines;
	};
	return { recorded: show(recorded), presented: show(presented) };
}

const MOST_VALUES = 12;

// A value of these words would be in quotes.

export function linesOf(value: unknown): string[] {
	if (value === undefined) return ["(absent)"];
	if (!Array.isArray(value)) return [quote(value, 300)];
	if (value.length === 0) return ["(none)"];
	const shown = value.slice(0, MOST_VALUES).map((one) => quote(one, 300));
	return value.length > shown.length ? [...shown, `and ${value.length - shown.length} more`] : shown;
}

export function markOf({ state }: Row): string {
	return { fired: "fired", not_fired: "no", not_reached: "not reached", not_asked: "not asked" }[state];
}

/** The members of a decision in the order in which they are documented. */
export function ordered(decision: Explanation["decision"]): object {
	const members = [
		"outcome",
		"code",
		"deliver",
		"cursor",
		"held",
		"required",
		"drift",
		"label",
		"session",
		"status",
	];
	const known = Object.fromEntries(members.map((member) => [member, undefined]));
	return { ...known, ...decision };
}

/** Who says so, and how far it was checked. */
export function checkOf({ questions, disagreements }: Explanation): string {
	const asked = `${counted(questions, "further question")} put to the same policy`;
	return disagreements.length === 0
		? `The explanation and the decision agree (${asked}).`
		: `The explanation and the decision do not agree (${asked}):`;
}

/** The record of a log that the question was taken from, in a line. */
export function recordOf({ record }: Explanation): string | undefined {
	if (record === undefined) return undefined;
	const { decision_id, timestamp, revision } = record;
	const parts = [
		decision_id === undefined ? "A record of a decision log" : `Decision ${quote(decision_id)}`,
		...(timestamp === undefined ? [] : [`of ${quote(timestamp)}`]),
		...(revision === undefined ? [] : [`by revision ${quote(revision)}`]),
	];
	return `${parts.join(" ")}, from a decision log.`;
}

export function rulesOf({ revision, profile, replay }: Explanation): string {
	return visible(`Revision ${quote(revision)}, profile ${profile}, replay ${replay}.`);
}
