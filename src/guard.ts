import type { CompletePolicyData } from "./data.ts";
import { type Decisions, whyNotSound } from "./decision.ts";
import { type Problem, type Questions, readFacts } from "./facts.ts";
import type { Facts } from "./generated/types.ts";
import { createListeners } from "./listeners.ts";
import type { Moment } from "./policy.ts";
import type { Rules } from "./rules.ts";
import { openSource, type RulesOptions } from "./source.ts";

export type { Moment };

export interface ResumeGuardOptions extends RulesOptions {
	/** Hears why a decision became `policy_fault`: the policy trapped, or its answer was not sound. Default: `console.error`. */
	readonly onFault?: (fault: PolicyFault) => void;
	/** Hears of each decision, just after it: for a log, a candidate policy, metrics. It must not take long. */
	readonly onDecision?: (event: DecisionEvent) => void;
}

/** A decision with what it was made from. */
export interface DecisionEvent {
	readonly moment: Moment;
	/** What the policy was asked, or what the host asked if that was no question. Claims and all: mask it before it is kept. */
	readonly facts: Facts | Questions[Moment];
	readonly decision: Decisions[Moment];
	/** Of the policy and the data that decided. */
	readonly revision: string;
	/** How long it took, in milliseconds. */
	readonly duration: number;
}

/** Labels and claims are short; what is longer than this would keep the host from everything else. */
const MAX_FACTS = 8 * 1024 * 1024;

/** Why a decision became `policy_fault`, for the log. */
export interface PolicyFault {
	readonly moment: Moment;
	readonly reason: string;
	/** What the Wasm threw, if it did. */
	readonly cause?: unknown;
}

/**
 * Facts in, decision out, for the four moments at which a host asks. Synchronous, no I/O, never throws: what cannot be
 * decided is refused (`invalid_facts`, `policy_fault`).
 */
export interface ResumeGuard extends Moments {
	/** The same four, for a question whose answer refuses nobody (which tools to list): `onDecision` does not hear of it. */
	readonly probe: Moments;
	/** The policy data in force, complete. */
	readonly data: CompletePolicyData;
	/** Of the policy and the data in force. A decision is by one revision, whole. */
	readonly revision: string;
	/** Hears of each new revision, once it is in force; returns how to stop listening. */
	onRevision(listener: () => void): () => void;
	/** Stops looking for new revisions; it decides on. */
	close(): void;
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

/**
 * Creates a guard: loads the policy and its data, and holds them to their contracts.
 *
 * @throws {TypeError} for an option of the wrong type
 * @throws {ResumeGuardError} `policy_invalid`, `data_invalid`, `file_unreadable`
 */
export async function createResumeGuard(options: ResumeGuardOptions): Promise<ResumeGuard> {
	assertOptions(options);
	const source = await openSource(options);
	let rules = source.first;
	const listeners = createListeners<[]>();
	source.start((next) => {
		rules = next;
		listeners.tell();
	});
	const { onDecision } = options;
	const onFault = (fault: PolicyFault) => {
		try {
			(options.onFault ?? reportFault)(fault);
		} catch (error) {
			reportFault(fault);
			console.error("mcp-resume-guard: onFault threw", error);
		}
	};

	function decide<M extends Moment>(moment: M, question: Questions[M]): Decisions[M] {
		return decideBy(rules, moment, question).decision;
	}

	function decideAloud<M extends Moment>(moment: M, question: Questions[M]): Decisions[M] {
		if (onDecision === undefined) return decide(moment, question);
		const start = performance.now();
		const { revision } = rules;
		const { facts, decision } = decideBy(rules, moment, question);
		try {
			onDecision({ moment, facts, decision, revision, duration: performance.now() - start });
		} catch (error) {
			console.error("mcp-resume-guard: onDecision threw", error);
		}
		return decision;
	}

	interface Decided<M extends Moment> {
		readonly facts: Facts | Questions[M];
		readonly decision: Decisions[M];
	}

	function decideBy<M extends Moment>(by: Rules, moment: M, question: Questions[M]): Decided<M> {
		try {
			return decideOrThrow(by, moment, question);
		} catch (cause) {
			const reason = "the policy could not be evaluated";
			onFault({ moment, reason, cause });
			const decision = answerTo(by, moment, question, { kind: "policy_fault", detail: reason });
			return { facts: question, decision };
		}
	}

	function decideOrThrow<M extends Moment>(by: Rules, moment: M, question: Questions[M]): Decided<M> {
		const answer = (problem: Problem): Decided<M> => ({
			facts: question,
			decision: answerTo(by, moment, question, problem),
		});
		const { policy, data } = by;
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

	return {
		...momentsOf(decideAloud),
		probe: momentsOf(decide),
		get data() {
			return rules.data;
		},
		get revision() {
			return rules.revision;
		},
		onRevision: listeners.add,
		close: source.close,
	};
}

function momentsOf(decide: <M extends Moment>(moment: M, question: Questions[M]) => Decisions[M]): Moments {
	return {
		session: (question) => decide("session", question),
		call: (question) => decide("call", question),
		resume: (question) => decide("resume", question),
		delivery: (question) => decide("delivery", question),
	};
}

// JSON.stringify escapes nothing but lone surrogates as `\\udXXX`; a backslash before the `u` may itself be escaped.
function hasLoneSurrogate(json: string): boolean {
	return json.includes("\\ud") && /(?:^|[^\\])(?:\\\\)*\\ud[89a-f]/.test(json);
}

function cursorOf(question: unknown): string {
	const { cursor } = (question ?? {}) as { cursor?: { last_event_id?: unknown } };
	return typeof cursor?.last_event_id === "string" ? cursor.last_event_id : "";
}

function reportFault({ moment, reason, cause }: PolicyFault): void {
	console.error(`mcp-resume-guard: policy_fault at ${moment}: ${reason}`, cause ?? "");
}

function assertOptions(options: unknown): asserts options is ResumeGuardOptions {
	const { data, policy, onFault, onDecision, ...others } = (options ?? {}) as Record<string, unknown>;
	const [unknown] = Object.keys(others);
	if (unknown !== undefined) throw new TypeError(`createResumeGuard: there is no option \`${unknown}\``);
	if (typeof data !== "string" && (typeof data !== "object" || data === null)) {
		throw new TypeError("createResumeGuard: `data` must be policy data or the path of a file");
	}
	const isPolicy =
		policy === undefined ||
		typeof policy === "string" ||
		policy instanceof Uint8Array ||
		policy instanceof ArrayBuffer ||
		policy instanceof WebAssembly.Module;
	if (!isPolicy)
		throw new TypeError("createResumeGuard: `policy` must be bytes, a WebAssembly.Module or a path");
	for (const [name, listener] of Object.entries({ onFault, onDecision })) {
		if (listener === undefined || typeof listener === "function") continue;
		throw new TypeError(`createResumeGuard: \`${name}\` must be a function`);
	}
}
