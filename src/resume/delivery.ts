import type { EventHeader } from "../events/log.ts";
import type { DeliveryDecision, Label } from "../generated/types.ts";
import type { Found, Ground } from "./ground.ts";

/** Decides about one event at a time, just before its bytes go out. */
export type Deliver = (event: EventHeader) => DeliveryDecision;

/** The labels that a token of certain claims has been found to cover, in one session. */
export type Covered = WeakMap<Label, DeliveryDecision>;

/**
 * A function that decides `delivery` for one connection. While the token is valid, events of one label have one answer,
 * so that the policy is asked once for each.
 */
export function createDeliver(ground: Ground, { facts }: Found, covered: Covered = new WeakMap()): Deliver {
	const { guard } = ground;
	return ({ id, label, request_id }) => {
		const now = Date.now() / 1000;
		const known = isValid(facts.presented?.exp, now, guard.data.clock_skew) ? covered.get(label) : undefined;
		if (known !== undefined) return known;
		const decision = guard.delivery({
			...facts,
			now,
			event: { event_id: id, ...(request_id !== undefined && { request_id }), ...label },
		});
		if (decision.outcome === "proceed") covered.set(label, decision);
		return decision;
	};
}

/** The longest time that a timer takes, in milliseconds. */
const LONGEST = 2 ** 31 - 1;

/** Calls back when the token has expired, skew and all; returns how to cancel it. */
export function atExpiry(ground: Ground, { facts }: Found, expired: () => void): () => void {
	const exp = facts.presented?.exp;
	if (typeof exp !== "number") return () => {};
	const left = Math.max(0, (exp + ground.guard.data.clock_skew) * 1000 - Date.now());
	// A timer may be early by a fraction of a millisecond.
	const timer = setTimeout(expired, Math.min(Math.ceil(left) + 1, LONGEST));
	return () => clearTimeout(timer);
}

// An anonymous session has no token that could expire.
function isValid(exp: unknown, now: number, skew: number): boolean {
	return exp === undefined || (typeof exp === "number" && now < exp + skew);
}

/**
 * Acknowledges what the cursor claims to have, as far as the presented token covers it: a narrow token does not let go
 * what belongs to a wider one.
 */
export async function acknowledge(
	ground: Ground,
	key: string,
	cursor: string,
	deliver: Deliver,
): Promise<void> {
	let last: string | undefined;
	for (const event of await ground.events.unacknowledged(key, cursor)) {
		if (deliver(event).outcome !== "proceed") break;
		last = event.id;
	}
	if (last !== undefined) await ground.events.acknowledge(key, last);
}
