import { ResumeGuardError } from "../errors.ts";
import type { DecisionLogEntry } from "./record.ts";
import type { Report } from "./report.ts";
import type { DecisionLogSink } from "./sink.ts";

export interface ChannelLimits {
	readonly bytes: number;
	readonly events: number;
	/** How long one write may take, in milliseconds. */
	readonly timeout: number;
}

export interface ChannelStats {
	readonly name: string;
	readonly written: number;
	/** Did not fit into the buffer, or were left at the end. */
	readonly dropped: number;
	/** The sink did not take them. */
	readonly lost: number;
	/** Writes that failed and were tried again. */
	readonly retried: number;
	/** Waiting now. */
	readonly buffered: number;
	readonly bufferedBytes: number;
}

/** The way to one sink: a buffer, and a writer that waits for nobody but the sink. */
export interface Channel {
	push(entry: DecisionLogEntry): void;
	/** Resolves when all that is here has been written, or lost, or with `deadline`; nothing is delayed meanwhile. */
	flush(deadline: Promise<unknown>): Promise<void>;
	/** What is still here is dropped. */
	close(): Promise<void>;
	stats(): ChannelStats;
}

const BATCH_BYTES = 256 * 1024;
/** In milliseconds: of OPA's decision logs. */
const FIRST_RETRY = 100;
const LAST_RETRY = 60_000;
/** While somebody waits for it. */
const LAST_RETRY_IN_HASTE = 500;
/** What may proceed takes no more of the buffer than this, so that refusals find room. */
const SHARE_OF_PROCEED = 3 / 4;

/** @param name the sink's, or what tells two of one name apart */
export function createChannel(
	sink: DecisionLogSink,
	name: string,
	limits: ChannelLimits,
	report: Report,
): Channel {
	const { batchBytes = BATCH_BYTES, delay = 0 } = sink;
	let buffer: DecisionLogEntry[] = [];
	let first = 0;
	let bytes = 0;
	let inFlight = 0;
	let written = 0;
	let dropped = 0;
	let lost = 0;
	let retried = 0;
	let running: Promise<void> | undefined;
	let isClosed = false;
	let inHaste = 0;
	let wake: (() => void) | undefined;
	let writing: AbortController | undefined;

	const count = () => buffer.length - first;

	function take(): DecisionLogEntry | undefined {
		const entry = buffer[first];
		if (entry === undefined) return undefined;
		first += 1;
		bytes -= entry.bytes;
		if (first === buffer.length || first > 1024) {
			buffer = buffer.slice(first);
			first = 0;
		}
		return entry;
	}

	function drop(entries: number): void {
		dropped += entries;
		report("dropped", name, entries);
	}

	function takeBatch(): DecisionLogEntry[] {
		const batch: DecisionLogEntry[] = [];
		let size = 0;
		for (let entry = buffer[first]; entry !== undefined; entry = buffer[first]) {
			// And a comma or the end of the line.
			size += entry.bytes + 1;
			if (batch.length > 0 && size > batchBytes) break;
			batch.push(entry);
			take();
		}
		return batch;
	}

	/** Wakes early if somebody waits, or if there is enough to go. */
	function pause(milliseconds: number): Promise<void> {
		return new Promise((resolve) => {
			// Nobody should have to wait for a log to end.
			const timer = setTimeout(done, milliseconds).unref();
			function done() {
				clearTimeout(timer);
				wake = undefined;
				resolve();
			}
			wake = done;
		});
	}

	async function run(): Promise<void> {
		while (count() > 0 && !isClosed) {
			if (delay > 0 && bytes < batchBytes && inHaste === 0) await pause(jittered(delay));
			if (!isClosed) await writeAll(takeBatch());
		}
	}

	async function writeAll(batch: readonly DecisionLogEntry[]): Promise<void> {
		let left = batch;
		for (let failures = 0; left.length > 0; ) {
			inFlight = left.length;
			if (isClosed) {
				drop(left.length);
				break;
			}
			try {
				const taken = Math.min((await writeOnce(left)) ?? left.length, left.length);
				if (!(taken >= 1)) throw new Error("the sink took nothing");
				written += taken;
				left = left.slice(taken);
				failures = 0;
			} catch (error) {
				if (!(error instanceof ResumeGuardError && error.code === "log_unavailable")) {
					lost += left.length;
					report("lost", name, left.length, error);
					break;
				}
				retried += 1;
				report("retried", name, 1, error);
				const wait = jittered(Math.min(FIRST_RETRY * 2 ** failures, LAST_RETRY));
				failures += 1;
				if (!isClosed) await pause(inHaste > 0 ? Math.min(wait, LAST_RETRY_IN_HASTE) : wait);
			}
		}
		inFlight = 0;
	}

	async function writeOnce(entries: readonly DecisionLogEntry[]): Promise<number | undefined> {
		const controller = new AbortController();
		const { signal } = controller;
		writing = controller;
		const timer = setTimeout(() => controller.abort(new Error("timed out")), limits.timeout).unref();
		const aborted = new Promise<never>((_, reject) => {
			signal.addEventListener("abort", () => reject(signal.reason), { once: true });
		});
		try {
			const taken = sink.write(entries, signal);
			// A logger is done when it returns.
			if (!isThenable(taken)) return taken ?? undefined;
			return (await Promise.race([taken, aborted])) ?? undefined;
		} finally {
			writing = undefined;
			clearTimeout(timer);
		}
	}

	function start(): void {
		running ??= run().finally(() => {
			running = undefined;
			if (count() > 0 && !isClosed) start();
		});
	}

	return {
		push(entry) {
			const { custom } = entry.record;
			const share = custom.outcome === "proceed" && custom.shadow === undefined ? SHARE_OF_PROCEED : 1;
			const fits = entry.bytes + bytes <= limits.bytes * share && count() < limits.events * share;
			if (isClosed || entry.bytes > limits.bytes || (!fits && share < 1)) return drop(1);
			// The latest say what is going on now.
			let evicted = 0;
			while (entry.bytes + bytes > limits.bytes || count() >= limits.events) {
				take();
				evicted += 1;
			}
			if (evicted > 0) drop(evicted);
			buffer.push(entry);
			bytes += entry.bytes;
			if (running !== undefined && failuresAreOver()) wake?.();
			start();
		},
		async flush(deadline) {
			let isOver = false;
			const over = deadline.then(() => {
				isOver = true;
			});
			inHaste += 1;
			wake?.();
			while (running !== undefined && !isOver) await Promise.race([running, over]);
			inHaste -= 1;
		},
		async close() {
			if (isClosed) return;
			isClosed = true;
			if (count() > 0) drop(count());
			buffer = [];
			first = 0;
			bytes = 0;
			wake?.();
			writing?.abort(new Error("closed"));
			await sink.close?.();
		},
		stats: () => ({
			name,
			written,
			dropped,
			lost,
			retried,
			buffered: count() + inFlight,
			bufferedBytes: bytes,
		}),
	};

	// A batch that is full need not wait; one that has failed must.
	function failuresAreOver(): boolean {
		return inFlight === 0 && bytes >= batchBytes;
	}
}

/** Half to all of it, so that many processes do not come at once. */
function jittered(milliseconds: number): number {
	return milliseconds * (0.5 + Math.random() / 2);
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
	return typeof (value as { then?: unknown } | undefined)?.then === "function";
}
