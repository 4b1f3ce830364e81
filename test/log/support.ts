import { readFileSync } from "node:fs";
import {
	createResumeGuard,
	type DecisionEvent,
	type Facts,
	type PolicyData,
	type ResumeGuard,
} from "../../src/index.ts";
import {
	createDecisionLog,
	type DecisionLog,
	type DecisionLogEntry,
	type DecisionLogEvent,
	type DecisionLogOptions,
	type DecisionLogSink,
} from "../../src/log/index.ts";

export const KEY = "a key of the tests, long enough";

/** Keeps what it is given. */
export interface Memory extends DecisionLogSink {
	readonly entries: DecisionLogEntry[];
}

export function memorySink(name = "memory"): Memory {
	const entries: DecisionLogEntry[] = [];
	return { name, entries, write: (batch) => void entries.push(...batch) };
}

/** A log whose records are read back from their lines. */
export async function startLog(
	options: Partial<DecisionLogOptions> = {},
): Promise<{ log: DecisionLog; records: () => Promise<DecisionLogEvent[]> }> {
	const sink = memorySink();
	const log = await createDecisionLog({ key: KEY, sinks: [sink], ...options });
	return {
		log,
		async records() {
			await log.flush();
			return sink.entries.map(({ json }) => JSON.parse(json) as DecisionLogEvent);
		},
	};
}

export const data = JSON.parse(readFileSync("policies/mcp/data.json", "utf8")) as PolicyData;

/** A guard, and what its log would hear. */
export async function startGuard(
	given: PolicyData = data,
): Promise<{ guard: ResumeGuard; heard: DecisionEvent[] }> {
	const heard: DecisionEvent[] = [];
	const guard = await createResumeGuard({
		data: given,
		onDecision: (event) => heard.push(event),
		onFault() {},
	});
	return { guard, heard };
}

const guards = new Map<string, ReturnType<typeof startGuard>>();

/** The same guard for the same data, having heard nothing yet. */
export async function guardOf(given: PolicyData): Promise<Awaited<ReturnType<typeof startGuard>>> {
	const key = JSON.stringify(given);
	const starting = guards.get(key) ?? startGuard(given);
	guards.set(key, starting);
	const started = await starting;
	started.heard.length = 0;
	return started;
}

export const FACTS = {
	moment: "call" as const,
	now: 1796000000,
	request: { method: "POST" as const, transport: "streamable-http" as const, session: "none" as const },
	presented: {
		iss: "https://as.example.com",
		sub: "alice",
		client_id: "desktop",
		aud: ["https://mcp.example.com"],
		scope: [],
		exp: 1796003600,
	},
	tool: "search",
} satisfies Facts;

/** One decision, in the form that a log hears of it. */
export function eventOf(part: Partial<DecisionEvent> = {}): DecisionEvent {
	return {
		moment: "call",
		facts: FACTS,
		decision: { outcome: "refuse", code: "tool_unmapped", drift: [], session: "keep", status: 403 },
		revision: "r1",
		duration: 0.25,
		...part,
	};
}

export function proceeding(part: Partial<DecisionEvent> = {}): DecisionEvent {
	return eventOf({
		decision: {
			outcome: "proceed",
			code: "covered",
			drift: [],
			session: "keep",
			status: 200,
			label: { tool: "search", aud: [], scope: [] },
		},
		...part,
	});
}
