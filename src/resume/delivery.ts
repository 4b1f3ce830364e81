import type { EventHeader } from "../events/log.ts";
import type { DeliveryDecision, Label } from "../generated/types.ts";
import type { Refused } from "../wire/refusal.ts";
import type { Found, Ground } from "./ground.ts";

/** Decides about one event at a time, just before its bytes go out. */
export type Deliver = (event: EventHeader) => DeliveryDecision;

/** The labels that a token of certain claims has been found to cover, in one session, by one revision. */
export interface Covered {
	revision: string;
	labels: WeakMap<Label, DeliveryDecision>;
}

export function createCovered({ guard }: Ground): Covered {
	return { revision: guard.revision, labels: new WeakMap() };
}

/**
 * A function that decides `delivery` for one connection. While the token is valid, events of one label have one answer,
 * so that the policy is asked once for each.
 */
export function createDeliver(
	ground: Ground,
	{ facts }: Found,
	covered = createCovered(ground),
	ask = ground.guard.delivery,
): Deliver {
	const { guard } = ground;
	return ({ id, label, request_id }) => {
		const now = Date.now() / 1000;
		if (covered.revision !== guard.revision) Object.assign(covered, createCovered(ground));
		const { labels } = covered;
		const known = isValid(facts.presented?.exp, now, guard.data.clock_skew) ? labels.get(label) : undefined;
		if (known !== undefined) return known;
		const decision = ask({
			...facts,
			now,
			event: { event_id: id, ...(request_id !== undefined && { request_id }), ...label },
		});
		if (decision.outcome === "proceed") labels.set(label, decision);
		return decision;
	};
}

/**
 * Asks again whether the session may go on with the token of an open connection, as a new revision may have it otherwise;
 * makes a refusal known. The session stays, whatever the policy says of it: nothing about who is connected has changed, and a
 * mistake in the policy must not cost what waits. The next request is decided by itself.
 */
export function decideAgain(ground: Ground, { key, facts }: Found): Refused | undefined {
	const decision = ground.guard.session(facts);
	if (decision.outcome === "proceed") return undefined;
	const kept: Refused = { ...decision, session: "keep" };
	ground.observe({ moment: "session", decision: kept, session: key });
	return kept;
}

// An anonymous session has no token that could expire.
function isValid(exp: unknown, now: number, skew: number): boolean {
	return exp === undefined || (typeof exp === "number" && now < exp + skew);
}

/**
 * Acknowledges what the cursor claims to have, as far as the presented token covers it: a narrow token does not let go
 * what belongs to a wider one.
 */
export async function acknowledge(ground: Ground, found: Found, key: string, cursor: string): Promise<void> {
	const covers = createDeliver(ground, found, undefined, ground.guard.probe.delivery);
	let last: string | undefined;
	for (const event of await ground.events.unacknowledged(key, cursor)) {
		if (covers(event).outcome !== "proceed") break;
		last = event.id;
	}
	if (last !== undefined) await ground.events.acknowledge(key, last);
}
