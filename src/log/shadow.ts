import { isDeepStrictEqual } from "node:util";
import type { DecisionEvent, Moment, Moments, ResumeGuard } from "../guard.ts";
import type { DecisionLogShadow } from "./event.ts";
import { createTurns } from "./turns.ts";

type Decision = DecisionEvent["decision"];

/** Where a candidate decides otherwise. */
export interface ShadowDifference extends DecisionLogShadow {
	readonly moment: Moment;
	/** What the host has answered. */
	readonly active: Decision;
	/** What it would have answered under the candidate. */
	readonly candidate: Decision;
	readonly candidateRevision: string;
	/** What both were asked. Claims and all: mask it before it is kept. */
	readonly facts: DecisionEvent["facts"];
}

export interface ShadowOptions {
	/** A guard with the candidate's rules. Give it an `onFault`: by default it prints each of its faults. */
	readonly candidate: Pick<ResumeGuard, "probe" | "revision">;
	/** The share of decisions that the candidate is asked about, 0 to 1. Default: 1. */
	readonly sample?: number;
	/** A decision log: differences become records of it, beside that of the decision. */
	readonly log?: { recordShadow(event: DecisionEvent, shadow: DecisionLogShadow): void };
	/** Hears of each difference. */
	readonly onDifference?: (difference: ShadowDifference) => void;
	/** How many decisions may wait for the candidate. Default: 1,000. */
	readonly waiting?: number;
	/** How long the candidate may decide before others have their turn, in milliseconds. Default: 2. */
	readonly budget?: number;
}

export interface ShadowStats {
	/** Decisions that the candidate has made, too. */
	readonly compared: number;
	/** Decisions that were not in the sample. */
	readonly skipped: number;
	/** Decisions that found too many waiting. */
	readonly dropped: number;
	/** The candidate, or a listener, threw. */
	readonly faults: number;
	readonly differences: number;
	/** Of these, the ones where the candidate would let in what was refused. */
	readonly widening: number;
	/** How many differences, by `<code> → <the candidate's>`. */
	readonly byCode: Readonly<Record<string, number>>;
}

export interface Shadow {
	/** For `onDecision`. It never throws and never waits. */
	record(event: DecisionEvent): void;
	/** Resolves when the candidate has decided all that waits. */
	flush(): Promise<void>;
	stats(): ShadowStats;
}

const COMPARED = ["outcome", "code", "deliver", "cursor", "session", "status", "held", "required"] as const;
/** Codes are few; a candidate that makes them up fills no memory. */
const MOST_PAIRS = 200;
const OTHER = "_OTHER";
/** When the candidate has used up its turn, it rests so many times as long: it takes a tenth of the process at most. */
const REST = 9;

/**
 * A candidate decides beside the active rules, on live traffic, once the answer is on its way. It is asked exactly what
 * they were asked, `now` included; its answers, faults and slowness change nothing. One evaluation cannot be interrupted,
 * so that a candidate should have passed its tables and benchmarks before.
 *
 * The facts have the claims that the active data reads: identity claims that only the candidate's data names are absent.
 *
 * @throws {TypeError} for wrong options
 */
export function createShadow(options: ShadowOptions): Shadow {
	assertOptions(options);
	const { candidate, sample = 1, log, onDifference } = options;
	let compared = 0;
	let skipped = 0;
	let dropped = 0;
	let faults = 0;
	let differences = 0;
	let widening = 0;
	const byCode = new Map<string, number>();

	interface Waiting {
		readonly event: DecisionEvent;
		readonly now: number;
	}
	const turns = createTurns<Waiting>({
		work(waiting) {
			try {
				compare(waiting);
			} catch {
				faults += 1;
			}
		},
		limit: options.waiting ?? 1_000,
		budget: options.budget ?? 2,
		rest: REST,
		keepsAlive: false,
	});

	function compare({ event, now }: Waiting): void {
		const { moment, facts, decision: active, revision } = event;
		const start = performance.now();
		const candidateRevision = candidate.revision;
		const ask = candidate.probe[moment] as (question: unknown) => ReturnType<Moments[Moment]>;
		const decision = ask({ now, ...facts });
		const duration = performance.now() - start;
		compared += 1;
		const members = COMPARED.filter(
			(name) => !isDeepStrictEqual(memberOf(active, name), memberOf(decision, name)),
		);
		if (members.length === 0) return;
		const shadow: DecisionLogShadow = {
			revision,
			outcome: active.outcome,
			code: active.code,
			differences: members,
			widens: letsIn(active, decision),
		};
		differences += 1;
		if (shadow.widens) widening += 1;
		count(`${active.code} → ${decision.code}`);
		log?.recordShadow({ moment, facts, decision, revision: candidateRevision, duration }, shadow);
		onDifference?.({ ...shadow, moment, active, candidate: decision, candidateRevision, facts });
	}

	function count(pair: string): void {
		const key = byCode.has(pair) || byCode.size < MOST_PAIRS ? pair : OTHER;
		byCode.set(key, (byCode.get(key) ?? 0) + 1);
	}

	return {
		record(event) {
			if (sample < 1 && Math.random() >= sample) skipped += 1;
			else if (!turns.add({ event, now: Date.now() / 1000 })) dropped += 1;
		},
		async flush() {
			turns.drain();
		},
		stats: () => ({
			compared,
			skipped,
			dropped,
			faults,
			differences,
			widening,
			byCode: Object.fromEntries(byCode),
		}),
	};
}

function memberOf(decision: Decision, name: (typeof COMPARED)[number]): unknown {
	return (decision as unknown as Record<string, unknown>)[name];
}

/** The candidate lets somebody in, or sends events, where the active rules do not. */
function letsIn(active: Decision, candidate: Decision): boolean {
	if (candidate.outcome === "proceed")
		return active.outcome !== "proceed" || delivered(candidate) > delivered(active);
	return delivered(candidate) > delivered(active);
}

function delivered(decision: Decision): number {
	return "deliver" in decision ? decision.deliver : 0;
}

function assertOptions(options: ShadowOptions): void {
	const { candidate, sample = 1, log, onDifference, waiting = 1, budget = 1, ...others } = options ?? {};
	const [unknown] = Object.keys(others);
	if (unknown !== undefined) throw new TypeError(`createShadow: there is no option \`${unknown}\``);
	if (typeof candidate?.probe?.resume !== "function") {
		throw new TypeError("createShadow: `candidate` must be a guard");
	}
	if (!(typeof sample === "number" && sample >= 0 && sample <= 1)) {
		throw new TypeError("createShadow: `sample` must be from 0 to 1");
	}
	if (log !== undefined && typeof log?.recordShadow !== "function") {
		throw new TypeError("createShadow: `log` must be a decision log");
	}
	if (onDifference !== undefined && typeof onDifference !== "function") {
		throw new TypeError("createShadow: `onDifference` must be a function");
	}
	for (const [name, value] of Object.entries({ waiting, budget })) {
		if (!(typeof value === "number" && value > 0))
			throw new TypeError(`createShadow: \`${name}\` must be positive`);
	}
}
