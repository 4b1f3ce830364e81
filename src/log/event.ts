import type { Moment } from "../guard.ts";

/**
 * One decision as it is kept: OPA's decision-log event (https://www.openpolicyagent.org/docs/management-decision-logs),
 * one a line in a file, an array of them in an upload. Nothing in it is a token, a session id or a subject.
 */
export interface DecisionLogEvent {
	/** `id` of the process, `version` of this package, and what the host adds. */
	readonly labels: Readonly<Record<string, string>>;
	/** A UUID: what is delivered twice is told by it. */
	readonly decision_id: string;
	/** Of the span that was active, in hex (W3C Trace Context). */
	readonly trace_id?: string;
	readonly span_id?: string;
	/** Of the policy and the data that decided. */
	readonly revision?: string;
	/** The same, by the name of the bundle that it came from. */
	readonly bundles?: Readonly<Record<string, { readonly revision: string }>>;
	/** `mcp/<moment>/decision`; `shadow/mcp/<moment>/decision` for what a candidate would have decided otherwise. */
	readonly path: string;
	/**
	 * The facts, masked. Where `custom.input` is `whole` they are a document of `schemas/facts.json` that the policy
	 * which decided answers with `result`: what was equal is equal, what differed differs.
	 */
	readonly input?: unknown;
	/** The decision, masked. */
	readonly result?: unknown;
	/** JSON Pointers to what was left out. */
	readonly erased?: readonly string[];
	/** JSON Pointers to what stands there in place of something else. */
	readonly masked?: readonly string[];
	/** RFC 3339, UTC. */
	readonly timestamp: string;
	/** `timer_server_handler_ns`: from the question to the answer, in nanoseconds. */
	readonly metrics: Readonly<Record<string, number>>;
	readonly custom: DecisionLogCustom;
}

/** What OPA has no member for. */
export interface DecisionLogCustom {
	readonly moment: Moment;
	readonly outcome: string;
	readonly code: string;
	/**
	 * `whole`: the facts can be decided about again. `partial`: something was left out of them, or what was asked was no
	 * question. `none`: they are not here.
	 */
	readonly input: "whole" | "partial" | "none";
	/** The record would have been too long. */
	readonly truncated?: true;
	/** It could not be masked, so that the facts are not here. */
	readonly mask_error?: true;
	/** `path` begins with `shadow/`: `result` is the candidate's, this is what was answered. */
	readonly shadow?: DecisionLogShadow;
}

export interface DecisionLogShadow {
	/** Of the rules that answered; the record's own is the candidate's. */
	readonly revision: string;
	readonly outcome: string;
	readonly code: string;
	/** The members of the two decisions that differ. */
	readonly differences: readonly string[];
	/** The candidate would let in what was refused. */
	readonly widens: boolean;
}

/**
 * Reads one line of a decision log, or one element of an upload.
 *
 * @returns `record`, or why it is none; never with a value out of it
 */
export function readDecisionLogEvent(line: string): { record: DecisionLogEvent } | { problem: string } {
	let value: unknown;
	try {
		value = JSON.parse(line);
	} catch {
		return { problem: "not JSON" };
	}
	if (!isRecord(value)) return { problem: "/: must be object" };
	const { path, decision_id, timestamp, custom } = value;
	if (typeof decision_id !== "string") return { problem: "/decision_id: must be string" };
	if (typeof timestamp !== "string") return { problem: "/timestamp: must be string" };
	if (typeof path !== "string" || !PATH.test(path)) return { problem: "/path: not of a moment" };
	if (!isRecord(custom)) return { problem: "/custom: must be object" };
	for (const name of ["moment", "outcome", "code"]) {
		if (typeof custom[name] !== "string") return { problem: `/custom/${name}: must be string` };
	}
	if (custom.moment !== PATH.exec(path)?.[2]) return { problem: "/custom/moment: not that of /path" };
	if (!["whole", "partial", "none"].includes(custom.input as string)) {
		return { problem: "/custom/input: must be whole, partial or none" };
	}
	return { record: value as unknown as DecisionLogEvent };
}

const PATH = /^(shadow\/)?mcp\/(session|call|resume|delivery)\/decision$/;

function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
