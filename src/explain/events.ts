import type { Decisions } from "../decision.ts";
import type { Facts, Held } from "../generated/types.ts";
import type { Moment } from "../policy.ts";
import type { Events, Run, Subject } from "./explanation.ts";
import type { Oracle } from "./oracle.ts";
import { rightsOf, subjectOf } from "./subject.ts";

/** The strip of events: delivered, held and waiting, one run for each need, from where it first appears. */
export function eventsOf(facts: Facts, decision: Decisions[Moment], oracle: Oracle): Events | undefined {
	const { cursor, pending, open = [] } = facts;
	if (cursor === undefined || pending === undefined || !("deliver" in decision)) return undefined;
	const { deliver } = decision;
	const held = heldOf(decision);
	const isEnd = decision.session === "end";
	const rights = rightsOf(facts);
	const { count, needs } = pending;

	const runs = needs.map((need, at): Run => {
		const isHeld = held?.event_id === need.event_id;
		const length = (needs[at + 1]?.index ?? count) - need.index;
		return {
			...subjectOf(need, rights, isHeld, oracle),
			state: need.index < deliver ? "delivered" : isHeld ? "held" : isEnd ? "dropped" : "waiting",
			first: need.event_id,
			count: length,
			mixed: at > 0 && length > 1,
		};
	});
	const heldCall = held !== undefined && held.event_id === undefined ? held : undefined;
	const at = heldCall === undefined ? -1 : open.findIndex((call) => isOf(call, heldCall));
	return {
		position: cursor.position,
		cursor: { before: cursor.last_event_id, after: decision.cursor },
		count,
		deliver,
		runs,
		open: open.map((call, index): Subject => subjectOf(call, rights, index === at, oracle)),
	};
}

export function heldOf(decision: Decisions[Moment]): Held | undefined {
	return "held" in decision ? decision.held : undefined;
}

function isOf(call: NonNullable<Facts["open"]>[number], held: Held): boolean {
	return call.tool === held.tool && call.rpc === held.rpc && call.request_id === held.request_id;
}
