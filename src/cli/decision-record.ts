import { quote } from "../explain/index.ts";
import type { Moment } from "../guard.ts";
import type { Decision } from "../index.ts";

/** A record of a decision log: what was asked and decided, or why it cannot be asked again. */
export type DecisionRecord = RecordHead &
	(
		| {
				readonly kind: "decision";
				readonly question: Readonly<Record<string, unknown>>;
				readonly result: Decision;
				/** Nothing was erased of `result`. */
				readonly isWhole: boolean;
		  }
		/** The adapter refused by itself, before any policy was asked. */
		| {
				readonly kind: "not_asked";
				readonly question: Readonly<Record<string, unknown>>;
				readonly result: Decision;
		  }
		| { readonly kind: "not_replayable"; readonly reason: string; readonly result?: Decision }
		/** What a candidate would have decided beside this: the decision itself has a record of its own. */
		| { readonly kind: "shadow" }
	);

export interface RecordHead {
	readonly moment: Moment;
	readonly id?: string;
	readonly timestamp?: string;
	readonly revision?: string;
}

/** The record of another policy, or what is none. */
export type NoDecisionRecord =
	| { readonly kind: "other"; readonly path: string }
	| { readonly kind: "problem"; readonly problem: string };

const PATH = /^\/?(shadow\/)?mcp\/(session|call|resume|delivery)\/decision$/;

/** Whether a JSON value claims to be a record of a decision log, and not a question. */
export function looksLikeRecord(value: Readonly<Record<string, unknown>>): boolean {
	return "decision_id" in value || ("path" in value && "result" in value);
}

/** Reads an event of OPA's decision log (https://www.openpolicyagent.org/docs/management-decision-logs). */
export function readRecord(value: unknown): DecisionRecord | NoDecisionRecord {
	if (!isRecord(value)) return problem("not an object");
	const { path, input, result, decision_id, timestamp, custom } = value;
	if (typeof path !== "string") return problem("/path: must be string");
	const [, shadow, moment] = PATH.exec(path) ?? [];
	if (moment === undefined) return { kind: "other", path };
	const revision = revisionOf(value);
	const head: RecordHead = {
		moment: moment as Moment,
		...(typeof decision_id === "string" && { id: decision_id }),
		...(typeof timestamp === "string" && { timestamp }),
		...(revision !== undefined && { revision }),
	};
	if (shadow !== undefined) return { ...head, kind: "shadow" };
	if (result === undefined) return { ...head, kind: "not_replayable", reason: "the decision is not there" };
	if (!isDecision(result)) return problem("/result: not a decision");
	if (!isRecord(input)) {
		return { ...head, kind: "not_replayable", reason: "the facts are not there", result };
	}
	if (input.moment !== undefined && input.moment !== moment)
		return problem("/input/moment: not that of /path");
	const { moment: _, ...rest } = input;
	// Facts have their time; what the host asked without one was asked then.
	const now = typeof timestamp === "string" ? Date.parse(timestamp) / 1000 : Number.NaN;
	if (rest.now === undefined && !Number.isFinite(now))
		return problem("/input/now: neither it nor /timestamp");
	const question = { now, ...rest };
	if (isBeforePolicy(result, custom)) return { ...head, kind: "not_asked", question, result };
	const reason = whyPartial(value);
	if (reason !== undefined) return { ...head, kind: "not_replayable", reason, result };
	const isWhole = !touches(value.erased, "/result");
	return { ...head, kind: "decision", question, result, isWhole };
}

function problem(text: string): NoDecisionRecord {
	return { kind: "problem", problem: text };
}

const OUTCOMES = ["proceed", "reauthenticate", "reauthorize", "reinitialize", "reissue", "refuse"];

function isDecision(result: unknown): result is Decision {
	return isRecord(result) && OUTCOMES.includes(result.outcome as string) && typeof result.code === "string";
}

// The adapter's own answers have a detail; what reached no policy is no whole question.
function isBeforePolicy(result: Decision, custom: unknown): boolean {
	const codes = ["invalid_facts", "token_missing", "policy_fault"];
	return (
		isRecord(custom) &&
		custom.input === "partial" &&
		custom.truncated !== true &&
		"detail" in result &&
		codes.includes(result.code)
	);
}

// A decision log of this package says it, and is then without nothing; in another one, whatever a mask has touched may
// have decided.
function whyPartial({ custom, erased, masked }: Readonly<Record<string, unknown>>): string | undefined {
	if (isRecord(custom) && typeof custom.input === "string") {
		if (custom.input === "whole" && !touches(erased, "/input")) return undefined;
		return custom.truncated === true ? "the facts were too long for the log" : "facts were erased by masking";
	}
	return touches(erased, "/input") || touches(masked, "/input") ? "facts were erased by masking" : undefined;
}

/**
 * Why an answer to a record's facts is none: they are no facts to the candidate, or it failed, so that what it would
 * have decided is not known. The same answer as the record's is one.
 */
export function whyUndecided(before: Decision, after: Decision): string | undefined {
	const { code } = after;
	if (code === before.code) return undefined;
	// The policy itself says token_missing where there is none; the adapter, with a detail, where the claims are no token's.
	const isUndecided =
		code === "invalid_facts" || code === "policy_fault" || (code === "token_missing" && "detail" in after);
	if (!isUndecided) return undefined;
	const detail = "detail" in after && after.detail !== undefined ? `, ${quote(after.detail, 200)}` : "";
	return `the candidate cannot decide its facts (${code}${detail})`;
}

function touches(pointers: unknown, part: string): boolean {
	return Array.isArray(pointers) && pointers.some((at) => String(at).startsWith(part));
}

function revisionOf({ revision, bundles }: Readonly<Record<string, unknown>>): string | undefined {
	if (typeof revision === "string") return revision;
	const [first] = isRecord(bundles) ? Object.values(bundles) : [];
	return isRecord(first) && typeof first.revision === "string" ? first.revision : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
