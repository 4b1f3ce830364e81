import type { DecisionLogEntry } from "./record.ts";

/** Where a decision log's records go. */
export interface DecisionLogSink {
	/** For reports and counts. */
	readonly name: string;
	/** How many bytes of records to take at once; one record may be longer. Default: 256 KiB. */
	readonly batchBytes?: number;
	/** How long to wait for more records before a batch that is not full is written, in milliseconds. Default: 0. */
	readonly delay?: number;
	/**
	 * Takes records in their order, one call at a time.
	 *
	 * @param signal aborted when it has taken too long
	 * @returns how many of them it has taken, from the front; default: all
	 * @throws {ResumeGuardError} `log_unavailable`: the records are kept, and tried again later. Any other error loses
	 *   them
	 */
	write(entries: readonly DecisionLogEntry[], signal: AbortSignal): Taken | Promise<Taken>;
	/** No call of `write` comes after it. */
	close?(): void | Promise<void>;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a sink need not say that it has taken all.
type Taken = number | undefined | void;
