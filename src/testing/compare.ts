import type { CaseResult } from "../tables.ts";
import { jsonLines, visible } from "./text.ts";

/** How a part of the text is shown: as it is, or in colour. */
export type Paint = (part: "wrong" | "beside" | "head", text: string) => string;

export interface CompareOptions {
	/** Columns of the terminal. Default 120. */
	readonly width?: number;
	readonly paint?: Paint;
	/** Why the decision was `policy_fault`. */
	readonly fault?: string | undefined;
}

/**
 * A case for a person: its facts, what was wanted and what was got side by side, and the rule that decided. A row in
 * which the two differ begins with `≠`.
 */
export function compare(
	{ moment, facts, want, got, differs, code }: CaseResult,
	{ width = 120, paint = (_, text) => text, fault }: CompareOptions = {},
): string {
	const room = Math.max(width, 80) - MARGINS - 2 * SEPARATOR.length;
	const side = Math.floor(room * 0.3);
	const left = room - 2 * side;
	const members: Readonly<Record<string, unknown>> = { ...got };
	const others = Object.keys(members).filter((member) => !Object.hasOwn(want, member));

	const answers = [...Object.keys(want), ...others].flatMap((member): Row[] => {
		const wanted = Object.hasOwn(want, member) ? jsonLines(want[member], side, member) : [];
		const had = Object.hasOwn(members, member)
			? jsonLines(members[member], side, member)
			: [`(no ${visible(member)})`];
		const look = differs.includes(member) ? "wrong" : wanted.length > 0 ? undefined : "beside";
		const height = Math.max(wanted.length, had.length);
		return Array.from({ length: height }, (_, row) => [wanted[row] ?? "", had[row] ?? "", look]);
	});
	const asked = Object.entries({ moment, ...facts }).flatMap(([name, value]) => jsonLines(value, left, name));

	const rows = Array.from({ length: Math.max(asked.length, answers.length) }, (_, row) => {
		const [wanted = "", had = "", look] = answers[row] ?? [];
		const cells = `${wanted.padEnd(side)}${SEPARATOR}${had}`.trimEnd();
		const marked = `${look === "wrong" ? "≠" : " "} ${cells}`;
		const beside = look === undefined ? marked : paint(look, marked);
		return `  ${(asked[row] ?? "").padEnd(left)}${SEPARATOR}${beside}`.trimEnd();
	});
	const head = `  ${"facts".padEnd(left)}${SEPARATOR}  ${"wanted".padEnd(side)}${SEPARATOR}got`;
	const reason = fault === undefined ? [] : [`  because: ${visible(fault)}`];
	return [`  decided by: ${code}`, ...reason, paint("head", head), ...rows].join("\n");
}

type Row = [wanted: string, had: string, look: "wrong" | "beside" | undefined];

const SEPARATOR = " │ ";
/** Before the facts, and for the mark. */
const MARGINS = 4;
