import { styleText } from "node:util";
import { counted, quote, type TextOptions, wrap } from "../explain/index.ts";
import type { Decision } from "../index.ts";
import { CHANGES, type Change, type Changed, WIDENING } from "./changes.ts";
import type { ExitCode } from "./command.ts";

/** Decisions that change alike. */
export interface ChangeGroup {
	readonly change: Change;
	/** What was refused would pass, or be delivered. */
	readonly widens: boolean;
	readonly before: Answer;
	readonly after: Answer;
	/** The members of the decision that are others, in at least one of them. */
	members: readonly string[];
	count: number;
	/** How many more events go out, in all of them. */
	events: number;
	/** Decision ids, or places in the log. */
	readonly examples: string[];
}

export interface Answer {
	readonly outcome: string;
	readonly code: string;
}

export interface Examples {
	count: number;
	readonly examples: { readonly name: string; readonly reason: string }[];
}

export interface ReplayResult {
	/** Of the candidate. */
	readonly revision: string;
	readonly exit: ExitCode;
	readonly replayed: number;
	readonly unchanged: number;
	readonly changed: number;
	/** Would pass, or be delivered, and was refused. */
	readonly widened: number;
	readonly changes: readonly ChangeGroup[];
	/** Changes of further kinds, which are only counted. */
	readonly furtherChanges: number;
	/** Answered before any policy was asked: no policy changes them. */
	readonly notAsked: number;
	/** Records of a shadow, and of other policies. */
	readonly shadow: number;
	readonly other: number;
	readonly notReplayable: Examples;
	readonly unreadable: Examples;
	readonly notes: readonly string[];
}

export interface Replayed {
	readonly name: string;
	readonly before: Decision;
	readonly after: Decision;
	readonly changed: Changed | undefined;
	readonly events: number;
	readonly isSameRevision: boolean;
	readonly claims: readonly string[];
}

export interface Candidate {
	readonly revision: string;
	readonly identityClaims: readonly string[];
	readonly faults: number;
	readonly firstFault?: string;
}

/** Counts, and keeps a few examples: as much for a long log as for a short one. */
export interface Report {
	replayed(of: Replayed): void;
	unreadable(place: string, problem: string): void;
	notReplayable(name: string, reason: string): void;
	passedOver(kind: "other" | "shadow" | "not_asked"): void;
	finish(candidate: Candidate): ReplayResult;
}

// Of each kind of change. Codes are few; those of a log that somebody else wrote may not be.
const MOST_GROUPS = 1000;
const MOST_CLAIMS = 1000;
const LONGEST_NAME = 200;

export function createReport(limit: number): Report {
	const groups = new Map<string, ChangeGroup>();
	const kinds = Object.fromEntries(Object.keys(CHANGES).map((change) => [change, 0])) as Record<
		Change,
		number
	>;
	const claims = new Set<string>();
	const passed = { other: 0, shadow: 0, not_asked: 0 };
	const unreadable: Examples = { count: 0, examples: [] };
	const notReplayable: Examples = { count: 0, examples: [] };
	let replayed = 0;
	let unchanged = 0;
	let widened = 0;
	let furtherChanges = 0;
	let differsAtSameRevision = 0;

	const add = (to: Examples, name: string, reason: string) => {
		to.count += 1;
		if (to.examples.length < limit) to.examples.push({ name: cut(name), reason });
	};

	return {
		replayed({ name, before, after, changed, events, isSameRevision, claims: found }) {
			replayed += 1;
			for (const claim of found) if (claims.size < MOST_CLAIMS) claims.add(claim);
			if (changed === undefined) {
				unchanged += 1;
				return;
			}
			const { change, members } = changed;
			if (isSameRevision) differsAtSameRevision += 1;
			const widens = WIDENING.includes(change);
			if (widens) widened += 1;
			const key = JSON.stringify([change, before.outcome, before.code, after.outcome, after.code]);
			const group = groups.get(key) ?? {
				change,
				widens,
				before: answerOf(before),
				after: answerOf(after),
				members: [],
				count: 0,
				events: 0,
				examples: [],
			};
			if (!groups.has(key)) {
				if (kinds[change] >= MOST_GROUPS) {
					furtherChanges += 1;
					return;
				}
				kinds[change] += 1;
				groups.set(key, group);
			}
			group.count += 1;
			group.events += events;
			group.members = [...new Set([...group.members, ...members])];
			if (group.examples.length < limit) group.examples.push(cut(name));
		},
		unreadable: (place, problem) => add(unreadable, place, problem),
		notReplayable: (name, reason) => add(notReplayable, name, reason),
		passedOver(kind) {
			passed[kind] += 1;
		},
		finish({ revision, identityClaims, faults, firstFault }) {
			const order = Object.keys(CHANGES);
			const changes = [...groups.values()].sort(
				(a, b) => order.indexOf(a.change) - order.indexOf(b.change) || b.count - a.count,
			);
			const isUnsaid = unreadable.count > 0 || notReplayable.count > 0 || replayed + passed.not_asked === 0;
			return {
				revision,
				exit: widened > 0 ? 1 : isUnsaid ? 2 : 0,
				replayed,
				unchanged,
				changed: replayed - unchanged,
				widened,
				changes,
				furtherChanges,
				notAsked: passed.not_asked,
				shadow: passed.shadow,
				other: passed.other,
				notReplayable,
				unreadable,
				notes: [
					...(faults > 0
						? [
								`the candidate failed ${faults} times, each of which is a refusal (policy_fault); first: ${quote(firstFault ?? "", 300)}`,
							]
						: []),
					...(replayed > 0 ? identityClaims : [])
						.filter((claim) => !claims.has(claim))
						.map(
							(claim) =>
								`the candidate compares the claim ${quote(claim)}, which no record has: drift in it cannot be seen here`,
						),
					...(differsAtSameRevision > 0
						? [
								`${differsAtSameRevision} decisions were made by this very revision and are now others: these facts are not what was decided`,
							]
						: []),
				],
			};
		},
	};
}

function answerOf({ outcome, code }: Decision): Answer {
	return { outcome, code: cut(code) };
}

function cut(text: string): string {
	return text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME)}…` : text;
}

/** The result as text; without colours it says the same. */
export function renderReport(result: ReplayResult, { width, colour }: TextOptions): string {
	const paint = (format: Parameters<typeof styleText>[0], text: string) =>
		colour ? styleText(format, text, { validateStream: false }) : text;
	const { revision, replayed, unchanged, changed, widened, notReplayable, unreadable } = result;
	const lines = [
		`${counted(replayed, "decision")} decided again by revision ${quote(revision)}: ${unchanged} as before, ${changed} otherwise.`,
		widened > 0
			? paint(["bold", "red"], `${widened} let more through: refused before, and would pass or be delivered.`)
			: result.exit === 0
				? paint("green", "Nothing that was refused would pass or be delivered.")
				: paint(
						["bold", "yellow"],
						"Whether something that was refused would pass cannot be said of all of the log.",
					),
	];
	let last: Change | undefined;
	for (const group of result.changes) {
		const { change, before, after, members, count, events, examples, widens } = group;
		if (change !== last) lines.push("", paint(widens ? ["bold", "red"] : "bold", `${CHANGES[change]}:`));
		last = change;
		const moved = events === 0 ? "" : `, ${events > 0 ? "+" : "−"}${counted(Math.abs(events), "event")}`;
		const what = change === "otherwise" ? ` (${members.join(", ")})` : "";
		lines.push(`  ${count} × ${answer(before)} → ${answer(after)}${moved}${what}`);
		if (examples.length > 0) {
			const names = wrap(`      ${examples.map(nameIn).join(", ")}`, width);
			lines.push(...names.map((line) => paint("dim", line)));
		}
	}
	if (result.furtherChanges > 0) {
		lines.push("", `${result.furtherChanges} changes of further kinds are not listed.`);
	}
	const passed = [
		...(result.notAsked > 0 ? [`${result.notAsked} were answered before any policy was asked`] : []),
		...(result.shadow > 0 ? [`${result.shadow} are a shadow's`] : []),
		...(result.other > 0 ? [`${result.other} are other policies'`] : []),
	];
	if (passed.length > 0) lines.push("", `Passed over: ${passed.join(", ")}.`);
	lines.push(
		...named(`not replayable: ${notReplayable.count}`, notReplayable),
		...named(`unreadable: ${unreadable.count}`, unreadable),
	);
	if (replayed + result.notAsked === 0)
		lines.push("", "There is no decision in the log that could be decided again.");
	for (const note of result.notes) {
		lines.push("", ...wrap(`Note: ${note}.`, width).map((line) => paint("yellow", line)));
	}
	return `${lines.join("\n")}\n`;

	function named(title: string, { count, examples }: Examples): string[] {
		if (count === 0) return [];
		const shown = examples.map(({ name, reason }) => `  ${nameIn(name)}: ${reason}`);
		const more = count > shown.length && shown.length > 0 ? [`  … and ${count - shown.length} more`] : [];
		return ["", paint("yellow", title), ...shown, ...more];
	}
}

/** A place in the log is ours, an id is not. */
function nameIn(name: string): string {
	return /^(?:after )?(?:line|element) \d+$/.test(name) ? name : quote(name);
}

function answer({ outcome, code }: Answer): string {
	return `${quote(code)} (${outcome})`;
}
