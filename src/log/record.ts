import { isDeepStrictEqual } from "node:util";
import type { DecisionEvent } from "../guard.ts";
import { encodeLine } from "./encode.ts";
import type { DecisionLogEvent, DecisionLogShadow } from "./event.ts";
import { createMask, isCode, type MaskedDecision, type MaskOptions } from "./mask.ts";
import { applyMask } from "./mask-rules.ts";

/** When a decision was made, and within what. */
export interface Occasion {
	readonly decision_id: string;
	readonly timestamp: string;
	readonly trace?: { readonly trace_id: string; readonly span_id: string } | undefined;
}

/** A record, and its line without the end of the line. */
export interface DecisionLogEntry {
	readonly record: DecisionLogEvent;
	readonly json: string;
	/** Of `json`, as UTF-8. */
	readonly bytes: number;
}

export interface RecorderOptions extends MaskOptions {
	readonly labels: Readonly<Record<string, string>>;
	readonly bundle: string | undefined;
	/** The rule `system/log/mask`, from a record as JSON text to its answer. */
	readonly mask: ((record: string) => unknown) | undefined;
	/** The longest record, in bytes. */
	readonly maxBytes: number;
	/** Why there is a record without facts. */
	readonly onMaskError: (error: unknown) => void;
}

export type Recorder = (
	event: DecisionEvent,
	occasion: Occasion,
	shadow?: DecisionLogShadow,
) => DecisionLogEntry;

/** Makes the record of a decision; it never throws, and never says more than the masks let it. */
export function createRecorder(options: RecorderOptions): Recorder {
	const { labels, bundle, mask, maxBytes, onMaskError } = options;
	const maskDecision = createMask(options);

	return (event, occasion, shadow) => {
		const head = headOf(event, occasion, shadow);
		try {
			const record = shorten(recordOf(head, maskDecision(event)));
			return record ?? entryOf(bare(head, { truncated: true }));
		} catch (error) {
			onMaskError(error);
			return entryOf(bare(head, { mask_error: true }));
		}
	};

	function headOf(event: DecisionEvent, occasion: Occasion, shadow: DecisionLogShadow | undefined) {
		const { moment, revision, duration } = event;
		const { outcome, code } = verdictOf(event);
		const { decision_id, timestamp, trace } = occasion;
		const path = `mcp/${moment}/decision`;
		const custom = {
			moment,
			outcome,
			code,
		};
		return {
			labels,
			decision_id,
			...trace,
			...(bundle === undefined ? { revision } : { bundles: { [bundle]: { revision } } }),
			path: shadow === undefined ? path : `shadow/${path}`,
			timestamp,
			metrics: { timer_server_handler_ns: Math.round(duration * 1e6) },
			custom: shadow === undefined ? custom : { ...custom, shadow },
		};
	}

	type Head = ReturnType<typeof headOf>;

	function recordOf(head: Head, decision: MaskedDecision): DecisionLogEvent {
		const { input, result, erased, masked, isWhole, isTruncated } = decision;
		const record: DecisionLogEvent = {
			...head,
			input,
			result,
			...(erased.length > 0 && { erased }),
			...(masked.length > 0 && { masked }),
			custom: {
				...head.custom,
				input: isWhole ? "whole" : "partial",
				...(isTruncated && { truncated: true }),
			},
		};
		return mask === undefined ? record : applyPolicy(record, mask);
	}

	// What is too long loses its lists first, which an attacker may have filled, and then all but its head.
	function shorten(record: DecisionLogEvent): DecisionLogEntry | undefined {
		const entry = entryOf(record);
		if (entry.bytes <= maxBytes) return entry;
		const { input, erased = [], masked, custom, ...rest } = record;
		const without = withoutLists(input);
		if (without === undefined) return undefined;
		const shorter = entryOf({
			...rest,
			input: without.input,
			erased: [...erased, ...without.erased],
			masked: (masked ?? []).filter((at) => !without.erased.some((list) => at.startsWith(`${list}/`))),
			custom: { ...custom, input: "partial", truncated: true },
		});
		return shorter.bytes <= maxBytes ? shorter : undefined;
	}

	function bare(head: Head, why: { mask_error: true } | { truncated: true }): DecisionLogEvent {
		const { outcome, code } = head.custom;
		return {
			...head,
			result: { outcome, code },
			erased: ["/input"],
			custom: { ...head.custom, input: "none", ...why },
		};
	}
}

function applyPolicy(record: DecisionLogEvent, mask: (record: string) => unknown): DecisionLogEvent {
	const masked = applyMask(record, mask(JSON.stringify(record)));
	if (isDeepStrictEqual(masked.input, record.input)) return masked;
	const input = masked.input === undefined ? "none" : "partial";
	return { ...masked, custom: { ...masked.custom, input } };
}

function entryOf(record: DecisionLogEvent): DecisionLogEntry {
	const json = encodeLine(record);
	return { record, json, bytes: Buffer.byteLength(json) };
}

function withoutLists(input: unknown): { input: object; erased: string[] } | undefined {
	if (typeof input !== "object" || input === null) return undefined;
	const { open, pending, ...rest } = input as { open?: unknown; pending?: unknown };
	const erased: string[] = [];
	if (open !== undefined) erased.push("/input/open");
	if (pending !== undefined) erased.push("/input/pending");
	return erased.length > 0 ? { input: rest, erased } : undefined;
}

/** What was decided, whatever was handed over as a decision. */
export function verdictOf({ decision }: DecisionEvent): { outcome: string; code: string } {
	try {
		const { outcome, code } = decision;
		return { outcome: OUTCOMES.has(outcome) ? outcome : "unknown", code: isCode(code) ? code : "unknown" };
	} catch {
		return { outcome: "unknown", code: "unknown" };
	}
}

const OUTCOMES = new Set(["proceed", "reauthenticate", "reauthorize", "reinitialize", "reissue", "refuse"]);
