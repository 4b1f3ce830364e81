import { randomUUID } from "node:crypto";
import type { DecisionEvent } from "../guard.ts";
import { loadEntrypoint, type PolicySource } from "../policy.ts";
import { type Channel, type ChannelStats, createChannel } from "./channel.ts";
import type { DecisionLogShadow } from "./event.ts";
import { createPseudonym } from "./pseudonym.ts";
import { createRecorder, type Occasion, verdictOf } from "./record.ts";
import { createReport, type DecisionLogProblem, printProblem } from "./report.ts";
import type { DecisionLogSink } from "./sink.ts";
import { createTurns } from "./turns.ts";
import { packageVersion } from "./version.ts";

export interface DecisionLogOptions {
	/** Where records go: each to all of them, and none waits for another. */
	readonly sinks: readonly DecisionLogSink[];
	/** What tells this process from others, beside `id` (a UUID, unless given) and `version`. */
	readonly labels?: Readonly<Record<string, string>>;
	/** The name of the bundle that the rules come from: revisions are then under `bundles`. */
	readonly bundle?: string;
	/**
	 * Of pseudonyms, at least 16 bytes. With one key the same subject has the same name in the logs of all processes;
	 * whoever has the key can tell which subject it is. Default: random, for as long as the process lives.
	 */
	readonly key?: string | Uint8Array;
	/** Identity claims (`identity_claims` of the data) to keep as they are, `org_id` for example. Default: none. */
	readonly clearClaims?: readonly string[];
	/** The share of what proceeds that is recorded, 0 to 1. Refusals always are. Default: 1. */
	readonly sample?: number;
	/**
	 * A mask of the operator's own, applied after the built-in one: Wasm that OPA built with the entrypoint
	 * `system/log/mask`.
	 */
	readonly mask?: PolicySource;
	/** What the mask finds under `data`. */
	readonly maskData?: object;
	readonly limits?: Partial<DecisionLogLimits>;
	/** The active span, in hex: `activeSpan` of `mcp-resume-guard/telemetry`. */
	readonly trace?: () => { readonly trace_id: string; readonly span_id: string } | undefined;
	/** Hears that records are dropped, lost or late: of each kind at once, then once in each `reportEvery`. Default: `console.error`. */
	readonly onProblem?: (problem: DecisionLogProblem) => void;
	/** In seconds. Default: 60. */
	readonly reportEvery?: number;
}

export interface DecisionLogLimits {
	/** The longest record, in bytes: a longer one loses its lists, then its facts. Default: 64 KiB. */
	readonly recordBytes: number;
	/** Of the records that wait for one sink, in bytes. Over it the oldest are dropped. Default: 4 MiB. */
	readonly bufferBytes: number;
	/** How many records may wait for one sink. Default: 10,000. */
	readonly bufferEvents: number;
	/** How many decisions may wait to become records. Default: 10,000. */
	readonly waiting: number;
	/** How long one write may take, in seconds. Default: 30. */
	readonly writeTimeout: number;
}

export interface DecisionLogStats {
	/** Decisions that became records. */
	readonly recorded: number;
	/** Decisions to proceed that were not in the sample. */
	readonly skipped: number;
	/** Decisions that found too many waiting, or the log closed. */
	readonly dropped: number;
	/** Records without facts, since masking failed. */
	readonly maskErrors: number;
	readonly sinks: readonly ChannelStats[];
}

export interface DecisionLog {
	/** For `onDecision`. It never throws and never waits. */
	record(event: DecisionEvent): void;
	/** Records what a candidate would have decided otherwise: `onDifference` of {@link createShadow} does. */
	recordShadow(event: DecisionEvent, shadow: DecisionLogShadow): void;
	/** Resolves when all so far has been written, or after `deadline` seconds (default 5). */
	flush(deadline?: number): Promise<void>;
	/** Takes no more, writes what it can within `deadline` seconds (default 5), and closes the sinks. */
	close(deadline?: number): Promise<void>;
	stats(): DecisionLogStats;
}

const DEFAULTS: DecisionLogLimits = {
	recordBytes: 64 * 1024,
	bufferBytes: 4 * 1024 * 1024,
	bufferEvents: 10_000,
	waiting: 10_000,
	writeTimeout: 30,
};
/** In milliseconds. */
const TURN = 5;
/** In seconds. */
const DEADLINE = 5;

/**
 * Keeps decisions as OPA's decision-log events. Masking is on, and cannot be turned off. A decision is masked and
 * written after it has been answered; nothing that becomes of its record changes it.
 *
 * @throws {TypeError} for wrong options
 * @throws {ResumeGuardError} `policy_invalid`, `file_unreadable` of the mask
 */
export async function createDecisionLog(options: DecisionLogOptions): Promise<DecisionLog> {
	assertOptions(options);
	const { sample = 1, labels = {}, bundle, clearClaims = [], trace } = options;
	const limits = { ...DEFAULTS, ...options.limits };
	const { report, close: closeReport } = createReport(
		(options.reportEvery ?? 60) * 1000,
		options.onProblem ?? printProblem,
	);
	const version = await packageVersion();
	const mask =
		options.mask === undefined
			? undefined
			: await loadEntrypoint(options.mask, "system/log/mask", options.maskData);
	let recorded = 0;
	let skipped = 0;
	let dropped = 0;
	let maskErrors = 0;
	let closing: Promise<void> | undefined;

	const toRecord = createRecorder({
		pseudonym: createPseudonym(options.key),
		clearClaims,
		labels: { id: randomUUID(), ...(version !== undefined && { version }), ...labels },
		bundle,
		mask,
		maxBytes: limits.recordBytes,
		onMaskError(error) {
			maskErrors += 1;
			report("masked", undefined, 1, error);
		},
	});
	const channels: readonly Channel[] = options.sinks.map((sink, index) =>
		createChannel(
			sink,
			nameOf(options.sinks, index),
			{ bytes: limits.bufferBytes, events: limits.bufferEvents, timeout: limits.writeTimeout * 1000 },
			report,
		),
	);
	interface Waiting {
		readonly event: DecisionEvent;
		readonly occasion: Occasion;
		readonly shadow: DecisionLogShadow | undefined;
	}
	const turns = createTurns<Waiting>({
		work({ event, occasion, shadow }) {
			const entry = toRecord(event, occasion, shadow);
			recorded += 1;
			for (const channel of channels) channel.push(entry);
		},
		limit: limits.waiting,
		budget: TURN,
		rest: 0,
		keepsAlive: true,
	});

	function add(event: DecisionEvent, shadow?: DecisionLogShadow): void {
		const occasion = {
			decision_id: randomUUID(),
			timestamp: new Date().toISOString(),
			trace: traceOf(trace),
		};
		if (closing === undefined && turns.add({ event, occasion, shadow })) return;
		dropped += 1;
		report("dropped");
	}

	async function flush(deadline = DEADLINE): Promise<void> {
		turns.drain();
		// Whoever waits for it waits; nobody else does.
		const { over, cancel } = timeLimit(deadline);
		await Promise.all(channels.map((channel) => channel.flush(over)));
		cancel();
	}

	return {
		record(event) {
			const isRefusal = verdictOf(event).outcome !== "proceed";
			if (!isRefusal && sample < 1 && Math.random() >= sample) skipped += 1;
			else add(event);
		},
		recordShadow: add,
		flush,
		close(deadline = DEADLINE) {
			closing ??= closeWithin(deadline);
			return closing;
		},
		stats: () => ({
			recorded,
			skipped,
			dropped,
			maskErrors,
			sinks: channels.map((channel) => channel.stats()),
		}),
	};

	async function closeWithin(deadline: number): Promise<void> {
		const end = performance.now() + deadline * 1000;
		await flush(deadline);
		const { over, cancel } = timeLimit(Math.max(0.1, (end - performance.now()) / 1000));
		await Promise.all(
			channels.map((channel) => Promise.race([channel.close().catch(() => undefined), over])),
		);
		cancel();
		closeReport();
	}
}

// Two files are two in reports and counts.
function nameOf(sinks: readonly DecisionLogSink[], index: number): string {
	const name = sinks[index]?.name ?? "";
	const nth = sinks.slice(0, index + 1).filter((sink) => sink.name === name).length;
	return nth === 1 ? name : `${name} ${nth}`;
}

function timeLimit(seconds: number): { over: Promise<void>; cancel: () => void } {
	let cancel = () => {};
	const over = new Promise<void>((resolve) => {
		const timer = setTimeout(resolve, seconds * 1000);
		cancel = () => clearTimeout(timer);
	});
	return { over, cancel };
}

function traceOf(trace: DecisionLogOptions["trace"]): Occasion["trace"] {
	if (trace === undefined) return undefined;
	try {
		const { trace_id = "", span_id = "" } = trace() ?? {};
		return /^[0-9a-f]{32}$/.test(trace_id) && /^[0-9a-f]{16}$/.test(span_id)
			? { trace_id, span_id }
			: undefined;
	} catch {
		return undefined;
	}
}

const KNOWN: Record<keyof DecisionLogOptions, (value: unknown) => boolean> = {
	sinks: (value) => Array.isArray(value) && value.length > 0 && value.every(isSink),
	labels: (value) => isRecord(value) && Object.values(value).every((label) => typeof label === "string"),
	bundle: (value) => typeof value === "string" && value !== "",
	key: (value) => typeof value === "string" || value instanceof Uint8Array,
	clearClaims: (value) => Array.isArray(value) && value.every((claim) => typeof claim === "string"),
	sample: (value) => typeof value === "number" && value >= 0 && value <= 1,
	mask: () => true,
	maskData: isRecord,
	limits: (value) => isRecord(value) && Object.entries(value).every(isLimit),
	trace: (value) => typeof value === "function",
	onProblem: (value) => typeof value === "function",
	reportEvery: (value) => typeof value === "number" && value > 0,
};

function assertOptions(options: DecisionLogOptions): void {
	if (!isRecord(options)) throw new TypeError("createDecisionLog: options must be an object");
	for (const [name, value] of Object.entries(options)) {
		if (!Object.hasOwn(KNOWN, name)) throw new TypeError(`createDecisionLog: there is no option \`${name}\``);
		const isGood = KNOWN[name as keyof DecisionLogOptions];
		if (value !== undefined && !isGood(value))
			throw new TypeError(`createDecisionLog: \`${name}\` is not good`);
	}
	if (options.sinks === undefined) throw new TypeError("createDecisionLog: `sinks` must be given");
	if (options.clearClaims?.some((claim) => claim === "sub")) {
		throw new TypeError("createDecisionLog: `sub` is never kept as it is");
	}
}

function isSink(value: unknown): boolean {
	return isRecord(value) && typeof value.name === "string" && typeof value.write === "function";
}

function isLimit([name, value]: [string, unknown]): boolean {
	return Object.hasOwn(DEFAULTS, name) && typeof value === "number" && value > 0;
}

function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
