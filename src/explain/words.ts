import type { CompletePolicyData } from "../data.ts";
import type { Decisions } from "../decision.ts";
import type { Facts } from "../generated/types.ts";
import type { Moment } from "../policy.ts";
import { heldOf } from "./events.ts";
import { lackOf } from "./rows.ts";
import { nameOfSubject, purposeOf } from "./subject.ts";
import { duration, instant } from "./time.ts";
import { counted, quote, quoteAll } from "./visible.ts";

/** What was asked, in a sentence. */
export function askedOf(moment: Moment, facts: Facts | undefined): string {
	if (facts === undefined) return `A question of the moment ${moment} that the policy cannot be asked.`;
	const { request, session, now } = facts;
	const what = {
		session: () =>
			`${request.method} about the session itself${facts.rpc === undefined ? "" : ` (${quote(facts.rpc, 80)})`}`,
		call: () =>
			facts.reference === undefined
				? `${request.method} that calls ${facts.tool === undefined ? "the method" : "the tool"} ${purposeOf(facts)}`
				: `${request.method} that refers to a call of ${purposeOf(facts.reference)}`,
		resume: () =>
			`${request.method} that resumes a stream from Last-Event-ID ${quote(facts.cursor?.last_event_id ?? "", 80)}`,
		delivery: () =>
			`An event of ${purposeOf(facts.event ?? {})} that is about to be written (${request.method})`,
	}[moment]();
	const where =
		session === undefined
			? request.session === "none"
				? "without a session id"
				: "with a session id that is not known"
			: `in a session that was opened ${duration(now - session.opened_at)} ${now < session.opened_at ? "later" : "before"}${
					session.transport === request.transport ? "" : ` on ${session.transport}`
				}`;
	return `${what}, on ${request.transport}, at ${instant(now)}, ${where}.`;
}

/** Outcome, code, what happens to the session, HTTP status, and what the client does next: one sentence. */
export function verdictOf(
	moment: Moment,
	decision: Decisions[Moment],
	facts: Facts | undefined,
	data: CompletePolicyData,
): string {
	const happened = whatHappened(moment, decision, facts, data);
	const parts = [happened.charAt(0).toLowerCase() + happened.slice(1)];
	if ("deliver" in decision && decision.outcome !== "proceed") {
		const moved = decision.cursor !== facts?.cursor?.last_event_id && decision.deliver > 0;
		parts.push(
			decision.deliver === 0
				? "nothing is sent"
				: `${counted(decision.deliver, "event")} before it ${decision.deliver === 1 ? "goes" : "go"} out`,
		);
		if (facts !== undefined)
			parts.push(`the cursor ${moved ? "moves to" : "stays at"} ${quote(decision.cursor, 80)}`);
	}
	if (facts?.request.session === "known" || decision.session === "end") {
		parts.push(
			decision.session === "end"
				? "the session ends, with its streams, its buffer and its id"
				: "the session is kept",
		);
	}
	parts.push(`HTTP status ${decision.status}`);
	const { outcome, code } = decision;
	return `${outcome.charAt(0).toUpperCase()}${outcome.slice(1)} (${quote(code)}): ${parts.join("; ")}; the client should ${nextStep(moment, decision)}.`;
}

function nextStep(moment: Moment, decision: Decisions[Moment]): string {
	switch (decision.outcome) {
		case "proceed":
			return moment === "resume" ? "read on" : "go on";
		case "reauthenticate":
			return "get a valid token and ask again";
		case "reauthorize":
			return moment === "call"
				? "get a token as required and call again"
				: "get a token as required and ask again with the same cursor, or give the call up";
		case "reinitialize":
			return "open a new session";
		case "reissue":
			return "call again, if the tool is safe to repeat, as this stream cannot be resumed";
		case "refuse":
			return (
				{
					request_id_in_use: "take another JSON-RPC id",
					quota_exceeded: "wait, and ask again",
					session_required: "say which session it means",
					policy_fault: "ask again later; it is the policy that has to be mended",
					invalid_facts: "do nothing, as it is the host that has to be mended",
				}[decision.code as string] ?? "not ask this again, as it is not to be had"
			);
	}
}

function whatHappened(
	moment: Moment,
	decision: Decisions[Moment],
	facts: Facts | undefined,
	data: CompletePolicyData,
): string {
	const detail =
		"detail" in decision && decision.detail !== undefined ? quote(decision.detail, 400) : undefined;
	const { code } = decision;
	switch (code) {
		case "token_missing":
			return detail === undefined ? "No token was presented" : `What was presented is no token (${detail})`;
		case "token_expired":
			return facts?.presented === undefined
				? "The token has expired"
				: `The token expired ${duration(facts.now - facts.presented.exp)} before it was used`;
		case "session_unknown":
			return "The session id is not known: it was never opened here, or has ended";
		case "session_required":
			return "No session id was given, where one is needed";
		case "principal_drift":
			return `The token is another principal's than the session's (${quoteAll(decision.drift)})${
				decision.session === "keep" ? ", and gets the answer that an unknown session id gets" : ""
			}`;
		case "binding_drift":
			return `The token is the same principal's, but its ${quoteAll(decision.drift)} changed in a way that the profile ${data.profile} does not allow`;
		case "tool_unmapped":
			return `Data does not say what ${purposeOf(facts ?? {})} needs`;
		case "request_id_in_use":
			return "A call with this JSON-RPC id is still open in the session";
		case "quota_exceeded":
			return "The principal has as much as it may have";
		case "cursor_unknown":
			return facts?.cursor?.position === "foreign"
				? "The cursor is of another session or stream"
				: "The cursor is no event of this session";
		case "cursor_evicted":
			return "An event after the cursor is gone, so that what follows would have a gap";
		case "cursor_ahead":
			return "The cursor was never issued, or never sent: nobody can have read so far";
		case "audience_not_covered":
		case "scope_not_covered": {
			const held = heldOf(decision);
			if (held === undefined) return "The token does not cover what is needed";
			const { event_id, request_id } = held;
			const name =
				event_id !== undefined
					? `event ${quote(event_id, 80)} (${purposeOf(held)})`
					: moment === "resume"
						? `the call of ${nameOfSubject({ ...held, held: true })} that is still running`
						: moment === "call"
							? `the call of ${purposeOf(held)}`
							: `an event of ${purposeOf(held)}${request_id === undefined ? "" : ` (request ${quote(request_id, 80)})`}`;
			return `The token does not cover ${name}: it lacks ${lackOf(held.missing)}`;
		}
		case "covered":
			return whatProceeds(moment, decision);
		case "undecided":
			return "No row of the decision table matched, and what no row allows is refused";
		case "invalid_facts":
			return `The host asked in a way that cannot be decided (${detail ?? "no detail"})`;
		case "policy_fault":
			return `The policy failed (${detail ?? "no detail"}), and a fault is a refusal`;
		default:
			return `The operator's own rule ${quote(code)} refuses`;
	}
}

function whatProceeds(moment: Moment, decision: Decisions[Moment]): string {
	if (moment === "call") return "The token covers the call, which goes on";
	if (moment === "delivery") return "The token covers the event, which goes out";
	if (moment === "session") return "The token and the session are good, and the request goes on";
	const deliver = "deliver" in decision ? decision.deliver : 0;
	if (deliver === 0) return "Nothing was missed, and the stream goes on from where it was";
	const { cursor } = decision as Decisions["resume"];
	return `The token covers ${deliver === 1 ? "the event" : `all ${deliver} events`} that ${
		deliver === 1 ? "was" : "were"
	} missed, which ${deliver === 1 ? "goes" : "go"} out in order, up to ${quote(cursor, 80)}`;
}
