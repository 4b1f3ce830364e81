import type { Attributes, BatchObservableResult, Meter, Observable } from "@opentelemetry/api";
import type { EventLogStats } from "../events/memory.ts";
import type { ResumeGuard } from "../guard.ts";

export interface ObservedEvents {
	stats(): EventLogStats;
}

/** A decision log (`mcp-resume-guard/log`). */
export interface ObservedLog {
	stats(): {
		readonly recorded: number;
		readonly skipped: number;
		readonly dropped: number;
		readonly maskErrors: number;
		readonly sinks: readonly {
			readonly name: string;
			readonly written: number;
			readonly dropped: number;
			readonly lost: number;
			readonly retried: number;
			readonly buffered: number;
			readonly bufferedBytes: number;
		}[];
	};
}

/** A candidate beside the active rules (`mcp-resume-guard/log`). */
export interface ObservedShadow {
	stats(): {
		readonly compared: number;
		readonly dropped: number;
		readonly faults: number;
		readonly widening: number;
		readonly byCode: Readonly<Record<string, number>>;
	};
}

export interface Observed {
	readonly events?: ObservedEvents;
	readonly log?: ObservedLog;
	readonly shadow?: ObservedShadow;
}

/** Reads the counts of others when metrics are collected; returns how to stop. */
export function observe(meter: Meter, { events, log, shadow }: Observed): () => void {
	const stops = [
		...(events === undefined ? [] : [observeEvents(meter, events)]),
		...(log === undefined ? [] : [observeLog(meter, log)]),
		...(shadow === undefined ? [] : [observeShadow(meter, shadow)]),
	];
	return () => {
		for (const stop of stops) stop();
	};
}

type Say = (instrument: Observable, value: number, attributes?: Attributes) => void;

function batch(meter: Meter, observables: Observable[], read: (say: Say) => void): () => void {
	const callback = (result: BatchObservableResult) =>
		read((instrument, value, attributes) => result.observe(instrument, value, attributes));
	meter.addBatchObservableCallback(callback, observables);
	return () => meter.removeBatchObservableCallback(callback, observables);
}

/** Says whether rules that came later are not in force; returns how to stop. */
export function observeRules(meter: Meter, guard: Pick<ResumeGuard, "status">): () => void {
	const failing = meter.createObservableGauge("mcp_resume_guard.reload.failing", {
		unit: "1",
		description: "1: what was there at the last attempt to reload the rules is not in force.",
	});
	return batch(meter, [failing], (say) => say(failing, guard.status().lastError === undefined ? 0 : 1));
}

function observeEvents(meter: Meter, events: ObservedEvents): () => void {
	const held = meter.createObservableUpDownCounter("mcp_resume_guard.events.buffered", {
		unit: "{event}",
		description: "Events in the event log.",
	});
	const size = meter.createObservableUpDownCounter("mcp_resume_guard.events.buffer.size", {
		unit: "By",
		description: "What they take.",
	});
	const evicted = meter.createObservableCounter("mcp_resume_guard.events.evicted", {
		unit: "{event}",
		description: "Events that went because of a limit.",
	});
	return batch(meter, [held, size, evicted], (say) => {
		const stats = events.stats();
		say(held, stats.events);
		say(size, stats.bytes);
		say(evicted, stats.evictedUnacknowledged, { "mcp_resume_guard.acknowledged": false });
		say(evicted, stats.evicted - stats.evictedUnacknowledged, { "mcp_resume_guard.acknowledged": true });
	});
}

function observeLog(meter: Meter, log: ObservedLog): () => void {
	const records = meter.createObservableCounter("mcp_resume_guard.log.records", {
		unit: "{record}",
		description: "Records of the decision log, by sink, and what became of them.",
	});
	const missed = meter.createObservableCounter("mcp_resume_guard.log.decisions.dropped", {
		unit: "{decision}",
		description: "Decisions that never became records.",
	});
	const unmasked = meter.createObservableCounter("mcp_resume_guard.log.mask.errors", {
		unit: "{record}",
		description: "Records without facts, since masking failed.",
	});
	const retries = meter.createObservableCounter("mcp_resume_guard.log.retries", {
		unit: "{write}",
		description: "Writes that failed and were tried again.",
	});
	const buffered = meter.createObservableUpDownCounter("mcp_resume_guard.log.buffered", {
		unit: "{record}",
		description: "Records that wait for a sink.",
	});
	const size = meter.createObservableUpDownCounter("mcp_resume_guard.log.buffer.size", {
		unit: "By",
		description: "What they take.",
	});
	return batch(meter, [records, missed, unmasked, retries, buffered, size], (say) => {
		const { dropped, maskErrors, sinks } = log.stats();
		say(missed, dropped);
		say(unmasked, maskErrors);
		for (const sink of sinks) {
			const of = { "mcp_resume_guard.sink": sink.name };
			for (const result of ["written", "dropped", "lost"] as const) {
				say(records, sink[result], { ...of, "mcp_resume_guard.result": result });
			}
			say(retries, sink.retried, of);
			say(buffered, sink.buffered, of);
			say(size, sink.bufferedBytes, of);
		}
	});
}

function observeShadow(meter: Meter, shadow: ObservedShadow): () => void {
	const compared = meter.createObservableCounter("mcp_resume_guard.shadow.decisions", {
		unit: "{decision}",
		description: "Decisions that the candidate was to make, too, and what became of that.",
	});
	const differences = meter.createObservableCounter("mcp_resume_guard.shadow.differences", {
		unit: "{decision}",
		description: "Decisions that the candidate makes otherwise, by the code and the candidate's.",
	});
	const widening = meter.createObservableCounter("mcp_resume_guard.shadow.widening", {
		unit: "{decision}",
		description: "Of these, the ones where it would let in what was refused.",
	});
	return batch(meter, [compared, differences, widening], (say) => {
		const stats = shadow.stats();
		for (const result of ["compared", "dropped", "faults"] as const) {
			say(compared, stats[result], { "mcp_resume_guard.result": result });
		}
		for (const [pair, count] of Object.entries(stats.byCode)) {
			const [code = "", candidate = code] = pair.split(" → ");
			say(differences, count, {
				"mcp_resume_guard.code": code,
				"mcp_resume_guard.candidate.code": candidate,
			});
		}
		say(widening, stats.widening);
	});
}
