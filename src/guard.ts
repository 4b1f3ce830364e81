import { type CompletePolicyData, readData } from "./data.ts";
import { type Decisions, whyNotSound } from "./decision.ts";
import { type Problem, type Questions, readFacts } from "./facts.ts";
import type { PolicyData } from "./generated/types.ts";
import { loadPolicy, type Moment, type PolicySource } from "./policy.ts";

export type { Moment };

export interface ResumeGuardOptions {
	/** Policy data, or the path of a file like `policies/mcp/data.json`. */
	readonly data: PolicyData | string;
	/** The policy: Wasm that OPA built, as bytes, a compiled module or a path. Default: the one in this package. */
	readonly policy?: PolicySource;
	/** Hears why a decision became `policy_fault`: the policy trapped, or its answer was not sound. Default: `console.error`. */
	readonly onFault?: (fault: PolicyFault) => void;
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
export interface ResumeGuard {
	/** A request about the session itself: `initialize`, `ping`, a list, a notification, GET without a cursor, DELETE. */
	session(question: Questions["session"]): Decisions["session"];
	/** A `tools/call`, another method that returns content, or an answer that refers to a call. */
	call(question: Questions["call"]): Decisions["call"];
	/** A GET with `Last-Event-ID`: how many of the pending events may go out, and where the cursor stands then. */
	resume(question: Questions["resume"]): Decisions["resume"];
	/** One event whose bytes are about to go out. */
	delivery(question: Questions["delivery"]): Decisions["delivery"];
	/** The policy data in force, complete. */
	readonly data: CompletePolicyData;
}

/**
 * Creates a guard: loads the policy and its data, and holds them to their contracts.
 *
 * @throws {TypeError} for an option of the wrong type
 * @throws {ResumeGuardError} `policy_invalid`, `data_invalid`, `file_unreadable`
 */
export async function createResumeGuard(options: ResumeGuardOptions): Promise<ResumeGuard> {
	assertOptions(options);
	const data = await readData(options.data);
	const policy = await loadPolicy(options.policy, data);
	const onFault = (fault: PolicyFault) => {
		try {
			(options.onFault ?? reportFault)(fault);
		} catch (error) {
			reportFault(fault);
			console.error("mcp-resume-guard: onFault threw", error);
		}
	};

	function decide<M extends Moment>(moment: M, question: Questions[M]): Decisions[M] {
		try {
			return decideOrThrow(moment, question);
		} catch (cause) {
			const reason = "the policy could not be evaluated";
			onFault({ moment, reason, cause });
			return answerTo(moment, question, { kind: "policy_fault", detail: reason });
		}
	}

	function decideOrThrow<M extends Moment>(moment: M, question: Questions[M]): Decisions[M] {
		const reading = readFacts(moment, question, data);
		if ("problem" in reading) {
			const { problem } = reading;
			if (problem.kind === "policy_fault") onFault({ moment, reason: problem.detail });
			return answerTo(moment, question, problem);
		}
		const facts = JSON.stringify(reading.facts);
		if (facts.length > MAX_FACTS) {
			return answerTo(moment, question, {
				kind: "invalid_facts",
				detail: `more than ${MAX_FACTS} characters`,
			});
		}
		if (hasLoneSurrogate(facts)) {
			return answerTo(moment, question, { kind: "invalid_facts", detail: "a lone surrogate" });
		}
		const answer = policy.evaluate(moment, facts);
		const reason = whyNotSound(moment, reading.facts, answer, data);
		if (reason === undefined) return answer as Decisions[M];
		policy.replace();
		onFault({ moment, reason });
		return answerTo(moment, question, { kind: "policy_fault", detail: "the policy's answer is not sound" });
	}

	const usual = { no_token: 401, invalid_facts: 400, policy_fault: 503 };

	// What the adapter answers itself, in the shape of the moment.
	function answerTo<M extends Moment>(moment: M, question: Questions[M], problem: Problem): Decisions[M] {
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
		session: (question) => decide("session", question),
		call: (question) => decide("call", question),
		resume: (question) => decide("resume", question),
		delivery: (question) => decide("delivery", question),
		data,
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
	const { data, policy, onFault, ...others } = (options ?? {}) as Record<string, unknown>;
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
	if (onFault !== undefined && typeof onFault !== "function") {
		throw new TypeError("createResumeGuard: `onFault` must be a function");
	}
}
