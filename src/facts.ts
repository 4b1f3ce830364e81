import { type Claims, readBinding, readPresented, whyNoToken } from "./claims.ts";
import type { CompletePolicyData } from "./data.ts";
import { describe } from "./data.ts";
import { type EventInput, foldEvents, foldNeeds, type NeedInput, whyNotFoldedWell } from "./fold.ts";
import type {
	Binding,
	CursorFacts,
	Event,
	Facts,
	Label,
	Pending,
	RequestFacts,
	SessionFacts,
} from "./generated/types.ts";
import { validateFacts } from "./generated/validators.js";
import type { Moment } from "./policy.ts";

/** The session record as a host has it: the binding may be the claims of the token that opened it. */
export interface SessionInput {
	readonly binding: Binding | Claims;
	/** The transport that the session was opened on. */
	readonly transport: SessionFacts["transport"];
	/** NumericDate, seconds. */
	readonly opened_at: number;
}

interface Question {
	/** NumericDate, seconds; the current time if absent. */
	readonly now?: number;
	readonly request: RequestFacts;
	/** The record of the session, if and only if `request.session` is `known`. */
	readonly session?: SessionInput;
	/** The verified claims of the request's token; absent: no token. */
	readonly presented?: Claims;
}

/** A request about the session itself: initialize, ping, a list, a notification, GET without a cursor, DELETE. */
export interface SessionQuestion extends Question {
	/** The JSON-RPC method, where there is one. */
	readonly rpc?: string;
}

/** A call: one of `tool` (tools/call), `rpc` (another method), or `reference` (the label of the call that an answer refers to). */
export interface CallQuestion extends Question {
	readonly tool?: string;
	readonly rpc?: string;
	readonly reference?: Label;
}

/** A GET with `Last-Event-ID`. */
export interface ResumeQuestion extends Question {
	readonly cursor: CursorFacts;
	/** The events after the cursor, in order: one by one, or folded. */
	readonly pending?: readonly EventInput[] | Pending;
	/** The calls of that stream that are still running. */
	readonly open?: readonly NeedInput[];
}

/** An event whose bytes are about to go out. */
export interface DeliveryQuestion extends Question {
	readonly event: Event;
}

export interface Questions {
	session: SessionQuestion;
	call: CallQuestion;
	resume: ResumeQuestion;
	delivery: DeliveryQuestion;
}

/** Why there is nothing to ask the policy. `no_token`: the presented claims are those of no token. */
export interface Problem {
	readonly kind: "no_token" | "invalid_facts" | "policy_fault";
	/** Where and what, never a claim's value. */
	readonly detail: string;
}

/** Turns what a host has into the policy's input (`schemas/facts.json`), or says why it cannot. */
export function readFacts(
	moment: Moment,
	question: unknown,
	data: CompletePolicyData,
): { facts: Facts } | { problem: Problem } {
	if (!isRecord(question)) return invalid("/: must be object");
	const facts: Record<string, unknown> = {
		moment,
		now: question.now ?? Date.now() / 1000,
		request: question.request,
	};

	if (question.presented !== undefined) {
		if (!isRecord(question.presented)) return invalid("/presented: must be object");
		const presented = readPresented(question.presented, data.identity_claims);
		if ("problem" in presented) {
			const reason = whyNoToken(question.presented);
			return reason === undefined
				? invalid(`/presented${presented.problem}`)
				: { problem: { kind: "no_token", detail: `/presented${reason}` } };
		}
		facts.presented = presented.value;
	}

	if (question.session !== undefined) {
		if (!isRecord(question.session)) return invalid("/session: must be object");
		const { binding, transport, opened_at } = question.session;
		// A record that was good when it was written and is not now is a fault of the store, not of the client.
		if (!isRecord(binding)) return fault("/session/binding: must be object");
		const read = readBinding(binding, data.identity_claims);
		if ("problem" in read) return fault(`/session/binding${read.problem}`);
		facts.session = { binding: read.value, transport, opened_at };
	}

	const problem = readMoment[moment](question, facts);
	if (problem !== undefined) return invalid(problem);
	if (!validateFacts(facts)) return invalid(describe(validateFacts.errors?.[0]));
	if ([facts.reference, facts.event, ...(facts.open ?? []), ...(facts.pending?.needs ?? [])].some(isOfTwo)) {
		return invalid("/: a label of both a tool and a method");
	}
	if ((facts.request.session === "known") !== (facts.session !== undefined)) {
		return invalid("/session: there if and only if /request/session is known");
	}
	if (facts.pending !== undefined && !Array.isArray(question.pending)) {
		const reason = whyNotFoldedWell(facts.pending, facts.cursor?.last_event_id);
		if (reason !== undefined) return invalid(`/pending${reason}`);
	}
	return { facts };
}

type Fields = Record<string, unknown>;

// Each adds what its moment asks about, and says what is wrong with it.
const readMoment: Record<Moment, (question: Fields, facts: Fields) => string | undefined> = {
	session(question, facts) {
		if (question.rpc !== undefined) facts.rpc = question.rpc;
		return undefined;
	},

	call(question, facts) {
		const subjects = ["tool", "rpc", "reference"].filter((name) => question[name] !== undefined);
		const [subject] = subjects;
		if (subject === undefined || subjects.length > 1) return "/: one of tool, rpc and reference";
		facts[subject] = question[subject];
		return isMethod(question, "POST");
	},

	resume(question, facts) {
		const { cursor, pending = [], open = [] } = question;
		facts.cursor = cursor;
		if (!isRecord(cursor) || typeof cursor.last_event_id !== "string")
			return "/cursor/last_event_id: must be string";
		const folded = Array.isArray(pending) ? foldEvents(pending, cursor.last_event_id) : { value: pending };
		if ("problem" in folded) return `/pending${folded.problem}`;
		facts.pending = folded.value;
		if (!Array.isArray(open)) return "/open: must be array";
		const needs = foldNeeds(open);
		if ("problem" in needs) return `/open${needs.problem}`;
		facts.open = needs.value;
		return isMethod(question, "GET");
	},

	delivery(question, facts) {
		const { event } = question;
		if (!isRecord(event)) return "/event: must be object";
		if (!Array.isArray(event.aud) || !Array.isArray(event.scope))
			return "/event: has no label (aud and scope)";
		facts.event = event;
		return undefined;
	},
};

function isOfTwo(label: { tool?: string; rpc?: string } | undefined): boolean {
	return label?.tool !== undefined && label.rpc !== undefined;
}

function isMethod(question: Fields, method: string): string | undefined {
	const { request } = question;
	return isRecord(request) && request.method === method ? undefined : `/request/method: must be ${method}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(detail: string): { problem: Problem } {
	return { problem: { kind: "invalid_facts", detail } };
}

function fault(detail: string): { problem: Problem } {
	return { problem: { kind: "policy_fault", detail } };
}
