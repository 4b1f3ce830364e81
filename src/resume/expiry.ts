import type { ResumeGuard } from "../guard.ts";
import type { Found, Ground } from "./ground.ts";

/** The longest time that a timer takes, in milliseconds. */
const LONGEST = 2 ** 31 - 1;

/** One timer for all that wait for the same moment: what a client has open has one token, mostly. */
interface Deadline {
	readonly timer: NodeJS.Timeout;
	readonly waiting: Set<{ readonly expired: () => void }>;
}

const deadlines = new WeakMap<ResumeGuard, Map<number, Deadline>>();

/** Calls back when the token has expired, skew and all; returns how to cancel it. */
export function atExpiry(
	{ guard }: Pick<Ground, "guard">,
	{ facts }: Pick<Found, "facts">,
	expired: () => void,
): () => void {
	const exp = facts.presented?.exp;
	if (typeof exp !== "number") return () => {};
	const at = (exp + guard.data.clock_skew) * 1000;
	const { waiting } = deadlineAt(guard, at);
	const entry = { expired };
	waiting.add(entry);
	return () => {
		waiting.delete(entry);
		if (waiting.size === 0) forget(guard, at, waiting);
	};
}

function deadlineAt(guard: ResumeGuard, at: number): Deadline {
	const all = deadlines.get(guard) ?? new Map<number, Deadline>();
	deadlines.set(guard, all);
	const known = all.get(at);
	if (known !== undefined) return known;
	const waiting: Deadline["waiting"] = new Set();
	const ring = () => {
		forget(guard, at, waiting);
		for (const { expired } of [...waiting]) expired();
	};
	const left = Math.max(0, at - Date.now());
	// A timer may be early by a fraction of a millisecond.
	const timer = setTimeout(ring, Math.min(Math.ceil(left) + 1, LONGEST));
	const made = { timer, waiting };
	all.set(at, made);
	return made;
}

function forget(guard: ResumeGuard, at: number, waiting: Deadline["waiting"]): void {
	const known = deadlines.get(guard)?.get(at);
	if (known?.waiting !== waiting) return;
	clearTimeout(known.timer);
	deadlines.get(guard)?.delete(at);
}
