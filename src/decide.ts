import { type Decisions, whyNotSound } from "./decision.ts";
import { type Problem, type Questions, readFacts } from "./facts.ts";
import type { Facts } from "./generated/types.ts";
import type { Moment } from "./policy.ts";
import type { Rules } from "./rules.ts";

/** Labels and claims are short; what is longer than this would keep the host from everything else. */
const MAX_FACTS = 8 * 1024 * 1024;

/** Why a decision became `policy_fault`, for the log. */
export interface PolicyFault {
	readonly moment: Moment;
	readonly reason: string;
	/** What the Wasm threw, if it did. */
	readonly cause?: unknown;
}

/** The four moments. */
export interface Moments {
	/** A request about the session itself: `initialize`, `ping`, a list, a notification, GET without a cursor, DELETE. */
	session(question: Questions["session"]): Decisions["session"];
	/** A `tools/call`, another method that returns content, or an answer that refers to a call. */
	call(question: Questions["call"]): Decisions["call"];
	/** A GET with `Last-Event-ID`: how many of the pending events may go out, and where the cursor stands then. */
	resume(question: Questions["resume"]): Decisions["resume"];
	/** One event whose bytes are about to go out. */
	delivery(question: Questions["delivery"]): Decisions["delivery"];
}

/** A decision, and what it was made from. */
export interface Decided<M extends Moment> {
	/** What the policy was asked, or what the host asked if that was no question. */
	readonly facts: Facts | Questions[M];
	readonly decision: Decisions[M];
}

/**
 * Decides by these rules. Never throws: what cannot be decided is refused (`invalid_facts`, `policy_fault`).
 *
 * @param onFault hears why a decision became `policy_fault`; must not throw
 */
export function decideBy<M extends Moment>(
	rules: Rules,
	moment: M,
	question: Questions[M],
	onFault: (fault: PolicyFault) => void,
): Decided<M> {
	try {
		return decideOrThrow(rules, moment, question, onFault);
	} catch (cause) {
		const reason = "the policy could not be evaluated";
		onFault({ moment, reason, cause });
		const decision = answerTo(rules, moment, question, { kind: "policy_fault", detail: reason });
		return { facts: question, decision };
	}
}

/** The four moments, each of which is decided by `decide`. */
export function momentsOf(
	decide: <M extends Moment>(moment: M, question: Questions[M]) => Decisions[M],
): Moments {
	return {
		session: (question) => decide("session", question),
		call: (question) => decide("call", question),
		resume: (question) => decide("resume", question),
		delivery: (question) => decide("delivery", question),
	};
}

function decideOrThrow<M extends Moment>(
	rules: Rules,
	moment: M,
	question: Questions[M],
	onFault: (fault: PolicyFault) => void,
): Decided<M> {
	const { policy, data } = rules;
	const answer = (problem: Problem): Decided<M> => ({
		facts: question,
		decision: answerTo(rules, moment, question, problem),
	});
	const reading = readFacts(moment, question, data);
	if ("problem" in reading) {
		const { problem } = reading;
		if (problem.kind === "policy_fault") onFault({ moment, reason: problem.detail });
		return answer(problem);
	}
	const { facts } = reading;
	const text = JSON.stringify(facts);
	if (text.length > MAX_FACTS) {
		return answer({ kind: "invalid_facts", detail: `more than ${MAX_FACTS} characters` });
	}
	if (hasLoneSurrogate(text)) return answer({ kind: "invalid_facts", detail: "a lone surrogate" });
	const proposed = policy.evaluate(moment, text);
	const reason = whyNotSound(moment, facts, proposed, data);
	if (reason === undefined) return { facts, decision: proposed as Decisions[M] };
	policy.replace();
	onFault({ moment, reason });
	return answer({ kind: "policy_fault", detail: "the policy's answer is not sound" });
}

const usual = { no_token: 401, invalid_facts: 400, policy_fault: 503 };

// What the adapter answers itself, in the shape of the moment.
function answerTo<M extends Moment>(
	{ data }: Rules,
	moment: M,
	question: Questions[M],
	problem: Problem,
): Decisions[M] {
	const code = problem.kind === "no_token" ? "token_missing" : problem.kind;
	const answer = {
		outcome: problem.kind === "no_token" ? "reauthenticate" : "refuse",
		code,
		drift: [],
		session: "keep",
		status: data.status[code] ?? usual[problem.kind],
		detail: problem.detail,
		...(moment === "resume" && { deliver: 0, cursor: cursorOf(question) }),
	};
	return answer as unknown as Decisions[M];
}

// JSON.stringify escapes nothing but lone surrogates as `\\udXXX`; a backslash before the `u` may itself be escaped.
function hasLoneSurrogate(json: string): boolean {
	return json.includes("\\ud") && /(?:^|[^\\])(?:\\\\)*\\ud[89a-f]/.test(json);
}

function cursorOf(question: unknown): string {
	const { cursor } = (question ?? {}) as { cursor?: { last_event_id?: unknown } };
	return typeof cursor?.last_event_id === "string" ? cursor.last_event_id : "";
}
