import { type Attributes, type Meter, metrics } from "@opentelemetry/api";
import type { DecisionEvent, ResumeGuard } from "../guard.ts";
import { createCodeLabels, OTHER } from "./codes.ts";
import {
	type ObservedEvents,
	type ObservedLog,
	type ObservedShadow,
	observe,
	observeRules,
} from "./observe.ts";
import { addSpanEvent } from "./span.ts";

export interface TelemetryOptions {
	/** Default: `metrics.getMeter("mcp-resume-guard")`, of the SDK that is registered by then. */
	readonly meter?: Meter;
	/** The event log, if it has counts of its own: that of `createMemoryEventLog` does. */
	readonly events?: ObservedEvents;
	/** The decision log. */
	readonly log?: ObservedLog;
	/** The candidate beside the active rules. */
	readonly shadow?: ObservedShadow;
}

export interface Telemetry {
	/** For `onDecision`. It never throws. */
	record(event: DecisionEvent): void;
	/** Counts the revisions that come into force, and says when later rules do not; returns how to stop. */
	watch(guard: Pick<ResumeGuard, "onRevision" | "status">): () => void;
	/** For `onReloadError` of a guard that is created by hand: counts the rules that did not come into force. */
	reloadFailed(error: { readonly code?: unknown }): void;
	/** Observes no more. */
	close(): void;
}

/** In seconds: a decision takes some tens of microseconds. */
const DURATIONS = [
	0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
];
const PENDING = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/**
 * Metrics of decisions, by moment, outcome and code, and an event on the active span for each refusal. No attribute has
 * anything of a token, a session or a question; the codes of an operator's own rules are limited in number.
 *
 * @throws {TypeError} for wrong options
 */
export function createTelemetry(options: TelemetryOptions = {}): Telemetry {
	assertOptions(options);
	const meter = options.meter ?? metrics.getMeter("mcp-resume-guard");
	const labelOf = createCodeLabels();
	const decisions = meter.createCounter("mcp_resume_guard.decisions", {
		unit: "{decision}",
		description: "Decisions, by moment, outcome and code.",
	});
	const duration = meter.createHistogram("mcp_resume_guard.decision.duration", {
		unit: "s",
		description: "How long a decision took.",
		advice: { explicitBucketBoundaries: DURATIONS },
	});
	const pending = meter.createHistogram("mcp_resume_guard.resume.pending", {
		unit: "{event}",
		description: "Events after the cursor of a resume.",
		advice: { explicitBucketBoundaries: PENDING },
	});
	const reloads = meter.createCounter("mcp_resume_guard.reloads", {
		unit: "{reload}",
		description: "Rules that came into force, or did not.",
	});
	const close = observe(meter, options);

	function record(event: DecisionEvent): void {
		const { moment, facts, decision } = event;
		const { outcome } = decision;
		const attributes: Attributes = {
			"mcp_resume_guard.moment": moment,
			"mcp_resume_guard.outcome": outcome,
			"mcp_resume_guard.code": labelOf(decision.code),
		};
		decisions.add(1, attributes);
		duration.record(event.duration / 1000, {
			"mcp_resume_guard.moment": moment,
			"mcp_resume_guard.outcome": outcome,
		});
		const count = moment === "resume" ? pendingOf(facts) : undefined;
		if (count !== undefined) pending.record(count, { "mcp_resume_guard.outcome": outcome });
		if (outcome === "proceed") return;
		addSpanEvent({
			...attributes,
			"mcp_resume_guard.revision": event.revision,
			"mcp_resume_guard.session": decision.session,
			"mcp_resume_guard.status": decision.status,
		});
	}

	return {
		record(event) {
			try {
				record(event);
			} catch {
				// A decision is not worth less because it could not be counted.
			}
		},
		watch(guard) {
			const unhear = guard.onRevision(() => reloads.add(1, { "mcp_resume_guard.result": "active" }));
			const unobserve = observeRules(meter, guard);
			return () => {
				unhear();
				unobserve();
			};
		},
		reloadFailed({ code }) {
			const isCode = typeof code === "string" && /^[a-z_]{1,64}$/.test(code);
			reloads.add(1, { "mcp_resume_guard.result": "failed", "error.type": isCode ? code : OTHER });
		},
		close,
	};
}

// Folded, or as the host has them; of what is no question there may be anything.
function pendingOf(facts: DecisionEvent["facts"]): number | undefined {
	const { pending } = facts as { pending?: { count?: unknown } | readonly unknown[] };
	const count = Array.isArray(pending) ? pending.length : (pending as { count?: unknown } | undefined)?.count;
	return typeof count === "number" && count >= 0 ? count : undefined;
}

function assertOptions(options: TelemetryOptions): void {
	const { meter, events, log, shadow, ...others } = options ?? {};
	const [unknown] = Object.keys(others);
	if (unknown !== undefined) throw new TypeError(`createTelemetry: there is no option \`${unknown}\``);
	if (meter !== undefined && typeof meter?.createCounter !== "function") {
		throw new TypeError("createTelemetry: `meter` must be a meter");
	}
	for (const [name, observed] of Object.entries({ events, log, shadow })) {
		if (observed !== undefined && typeof observed?.stats !== "function") {
			throw new TypeError(`createTelemetry: \`${name}\` must have \`stats\``);
		}
	}
}
