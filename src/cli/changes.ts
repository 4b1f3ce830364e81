import { isDeepStrictEqual } from "node:util";
import type { Decision } from "../index.ts";

/** How a decision changes, worst first: what lets more through, then what lets less through, then the rest. */
export const CHANGES = {
	passes: "was refused, would pass",
	delivers_more: "more events would be delivered",
	session_kept: "the session ended, would be kept",
	needs_less: "the call goes on, what it emits would need less",
	refused: "passed, would be refused",
	delivers_less: "fewer events would be delivered",
	session_ended: "the session was kept, would end",
	otherwise: "would be answered otherwise",
} as const;

export type Change = keyof typeof CHANGES;

/** Those for which a candidate is refused. */
export const WIDENING: readonly Change[] = ["passes", "delivers_more"];

/** The members of a decision that somebody acts on; `detail` only tells. */
const MEMBERS = [
	"outcome",
	"code",
	"status",
	"session",
	"deliver",
	"cursor",
	"held",
	"required",
	"drift",
	"label",
] as const;

/** What becomes of a decision, and the members of it that are others. */
export interface Changed {
	readonly change: Change;
	readonly members: readonly string[];
}

/**
 * What becomes of a decision; `undefined` if nothing does.
 *
 * @param isWhole whether `before` has all its members: what a mask erased of it is not compared
 */
export function changeOf(before: Decision, after: Decision, isWhole: boolean): Changed | undefined {
	const [old, now] = [before, after] as unknown as [Members, Members];
	const members = MEMBERS.filter(
		(member) => (isWhole || old[member] !== undefined) && !isDeepStrictEqual(old[member], now[member]),
	);
	return members.length === 0 ? undefined : { change: kindOf(before, after, old, now), members };
}

function kindOf(before: Decision, after: Decision, old: Members, now: Members): Change {
	const proceeded = before.outcome === "proceed";
	const proceeds = after.outcome === "proceed";
	if (!proceeded && proceeds) return "passes";
	const more = deliveredBy(after) - deliveredBy(before);
	if (proceeded && !proceeds) return "refused";
	if (more > 0) return "delivers_more";
	if (before.session === "end" && after.session === "keep") return "session_kept";
	if (proceeds && lacks(old.label, now.label)) return "needs_less";
	if (more < 0) return "delivers_less";
	if (before.session === "keep" && after.session === "end") return "session_ended";
	return "otherwise";
}

type Members = Readonly<Record<(typeof MEMBERS)[number], unknown>>;

/** How many events a decision sends. */
export function deliveredBy(decision: Decision): number {
	// Of a log it may be anything.
	return "deliver" in decision && Number.isSafeInteger(decision.deliver) ? decision.deliver : 0;
}

// Something that the old label needed, and the new one does not.
function lacks(before: unknown, after: unknown): boolean {
	return (["aud", "scope"] as const).some((claim) => {
		const kept = setOf(after, claim);
		return [...setOf(before, claim)].some((value) => !kept.has(value));
	});
}

function setOf(label: unknown, claim: "aud" | "scope"): Set<unknown> {
	const values = (label as Record<string, unknown> | undefined)?.[claim];
	return new Set(Array.isArray(values) ? values : []);
}
