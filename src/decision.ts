import type { CompletePolicyData } from "./data.ts";
import { describe } from "./data.ts";
import type {
	CallDecision,
	DeliveryDecision,
	Facts,
	ResumeDecision,
	SessionDecision,
} from "./generated/types.ts";
import {
	type Validator,
	validateCallDecision,
	validateDeliveryDecision,
	validateResumeDecision,
	validateSessionDecision,
} from "./generated/validators.js";
import type { Moment } from "./policy.ts";

/** The answer of each moment: a union that `outcome` tells apart. */
export interface Decisions {
	session: SessionDecision;
	call: CallDecision;
	resume: ResumeDecision;
	delivery: DeliveryDecision;
}

const validators: { [M in Moment]: Validator<Decisions[M]> } = {
	session: validateSessionDecision,
	call: validateCallDecision,
	resume: validateResumeDecision,
	delivery: validateDeliveryDecision,
};

/**
 * The policy proposes, this checks: policies are edited by people, and an answer is acted on only if it has the shape
 * of its moment, moves the cursor in no other way than there is, and is above a floor that no policy can lower.
 *
 * @returns what is wrong with the answer, or `undefined`
 */
export function whyNotSound(
	moment: Moment,
	facts: Facts,
	answer: unknown,
	data: CompletePolicyData,
): string | undefined {
	const validate = validators[moment];
	if (!validate(answer)) return `the answer is not one of ${moment}: ${describe(validate.errors?.[0])}`;
	const decision: Decisions[Moment] = answer;
	const delivers = "deliver" in decision && decision.deliver > 0;
	if ((decision.outcome === "proceed" || delivers) && !isAboveFloor(moment, facts, data)) {
		return "the answer lets somebody in without a known session, the same principal, or a token that has not expired";
	}
	if ("deliver" in decision) return whyNotInPlace(facts, decision, data);
	return undefined;
}

// (deliver, cursor) is (0, unchanged), (held.index, held.before) or (count, last).
function whyNotInPlace(facts: Facts, decision: ResumeDecision, data: CompletePolicyData): string | undefined {
	const { cursor, pending } = facts;
	if (cursor === undefined || pending === undefined) return "there is no cursor to move";
	const { outcome, deliver } = decision;
	const isAt = (count: number, id: string) => deliver === count && decision.cursor === id;

	if (outcome === "proceed") {
		return isAt(pending.count, pending.last ?? cursor.last_event_id)
			? undefined
			: "proceed delivers all that is pending, and nothing else";
	}
	if (isAt(0, cursor.last_event_id)) return undefined;
	if (outcome !== "reauthorize") return `${outcome} delivers nothing`;
	if (data.replay !== "prefix") return "only replay: prefix delivers a part";
	const held = pending.needs.find(({ event_id }) => event_id === decision.held.event_id);
	return held !== undefined && isAt(held.index, held.before)
		? undefined
		: "a prefix ends just before the event that is held";
}

function isAboveFloor(moment: Moment, facts: Facts, data: CompletePolicyData): boolean {
	const { request, session, presented, now } = facts;
	if (request.session === "unknown") return false;
	if (presented === undefined) return data.anonymous && isAnonymous(moment, facts);
	if (!(now < presented.exp + data.clock_skew)) return false;
	if (request.session === "none")
		return opensSse(moment, facts) || (moment !== "resume" && request.method === "POST");
	const { iss, sub } = session?.binding ?? {};
	return iss !== undefined && sub !== undefined && iss === presented.iss && sub === presented.sub;
}

// A request of an anonymous session, or the one that opens it.
function isAnonymous(moment: Moment, facts: Facts): boolean {
	const { request, session, rpc } = facts;
	if (request.session === "known") return session?.binding.anonymous === true;
	return (
		opensSse(moment, facts) || (moment === "session" && request.method === "POST" && rpc === "initialize")
	);
}

// The GET of HTTP+SSE (MCP 2024-11-05): the session's id comes with its first event.
function opensSse(moment: Moment, { request }: Facts): boolean {
	return moment === "session" && request.method === "GET" && request.transport === "sse";
}
