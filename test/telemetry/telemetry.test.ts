import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
	AggregationTemporality,
	type DataPoint,
	type Histogram,
	InMemoryMetricExporter,
	MeterProvider,
	type MetricData,
	PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
	BasicTracerProvider,
	InMemorySpanExporter,
	SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readCases } from "../../scripts/tables.ts";
import { createMemoryEventLog, createResumeGuard } from "../../src/index.ts";
import { createDecisionLog, createShadow } from "../../src/log/index.ts";
import { activeSpan, createTelemetry, type TelemetryOptions } from "../../src/telemetry/index.ts";
import { data, eventOf, FACTS, guardOf, memorySink, proceeding, startGuard } from "../log/support.ts";
import { ask } from "../tables/run.ts";
import { inTemporaryFolder } from "../temporary.ts";

const spans = new InMemorySpanExporter();
const tracing = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const tracer = tracing.getTracer("test");

beforeAll(() => {
	context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
	trace.setGlobalTracerProvider(tracing);
});
afterAll(() => {
	trace.disable();
	context.disable();
});
beforeEach(() => spans.reset());

/** Telemetry on an SDK of its own, and what the SDK would export. */
function start(options: Omit<TelemetryOptions, "meter"> = {}) {
	const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
	const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
	const provider = new MeterProvider({ readers: [reader] });
	const telemetry = createTelemetry({ ...options, meter: provider.getMeter("test") });
	return {
		telemetry,
		async collect() {
			await reader.forceFlush();
			const collected = new Map<string, MetricData>();
			for (const { scopeMetrics } of exporter.getMetrics()) {
				for (const { metrics } of scopeMetrics) {
					for (const metric of metrics) collected.set(metric.descriptor.name, metric);
				}
			}
			exporter.reset();
			return collected;
		},
	};
}

type Collected = Map<string, MetricData>;

/** Values by the values of their attributes. */
function valuesOf(collected: Collected, name: string): Record<string, number> {
	const points = (collected.get(name)?.dataPoints ?? []) as DataPoint<number>[];
	return Object.fromEntries(
		points.map(({ attributes, value }) => [Object.values(attributes).join(" "), value]),
	);
}

function histogramOf(collected: Collected, name: string): DataPoint<Histogram>[] {
	return (collected.get(name)?.dataPoints ?? []) as DataPoint<Histogram>[];
}

describe("decisions", () => {
	it("are counted by moment, outcome and code", async () => {
		const { telemetry, collect } = start();
		for (const event of [eventOf(), eventOf(), proceeding()]) telemetry.record(event);
		const collected = await collect();
		expect(valuesOf(collected, "mcp_resume_guard.decisions")).toEqual({
			"call refuse tool_unmapped": 2,
			"call proceed covered": 1,
		});
		expect(collected.get("mcp_resume_guard.decisions")?.descriptor.unit).toBe("{decision}");
		const [point] = collected.get("mcp_resume_guard.decisions")?.dataPoints ?? [];
		expect(Object.keys(point?.attributes ?? {})).toEqual([
			"mcp_resume_guard.moment",
			"mcp_resume_guard.outcome",
			"mcp_resume_guard.code",
		]);
	});

	it("are timed in seconds, in buckets that tell them apart", async () => {
		const { telemetry, collect } = start();
		telemetry.record(eventOf({ duration: 0.04 }));
		telemetry.record(eventOf({ duration: 4 }));
		const collected = await collect();
		expect(collected.get("mcp_resume_guard.decision.duration")?.descriptor.unit).toBe("s");
		const [point] = histogramOf(collected, "mcp_resume_guard.decision.duration");
		expect(point?.value.sum).toBeCloseTo(0.00404);
		expect(point?.value.buckets.counts.filter((count) => count > 0)).toEqual([1, 1]);
	});

	it("of a resume say how many events were pending, folded or one by one", async () => {
		const { telemetry, collect } = start();
		const pending = (of: unknown) => eventOf({ moment: "resume", facts: { pending: of } as never });
		for (const of of [
			{ count: 7, needs: [] },
			[{}, {}],
			undefined,
			null,
			"x",
			{ count: "x" },
			{ count: -1 },
		]) {
			telemetry.record(pending(of));
		}
		telemetry.record(eventOf({ facts: { pending: { count: 5 } } as never }));
		const [point] = histogramOf(await collect(), "mcp_resume_guard.resume.pending");
		expect(point?.value).toMatchObject({ count: 2, sum: 9 });
	});

	it("have a limited number of codes, whatever a policy makes up, and the standard ones always", async () => {
		const { telemetry, collect } = start();
		const refuse = (code: string) => eventOf({ decision: { ...eventOf().decision, code } as never });
		for (let i = 0; i < 500; i++) telemetry.record(refuse(`custom:made_up_${i}`));
		for (const code of ["custom:made_up_3", "custom:late", "tool_unmapped", "custom:UPPER", "x y"]) {
			telemetry.record(refuse(code));
		}
		const values = valuesOf(await collect(), "mcp_resume_guard.decisions");
		expect(Object.keys(values)).toHaveLength(52);
		expect(values["call refuse tool_unmapped"]).toBe(1);
		expect(values["call refuse custom:made_up_3"]).toBe(2);
		expect(values["call refuse _OTHER"]).toBe(450 + 3);
	});

	it("that cannot be counted hurt nobody", () => {
		const { telemetry } = start();
		expect(() => telemetry.record(null as never)).not.toThrow();
		expect(() => telemetry.record(eventOf({ decision: null as never }))).not.toThrow();
		expect(() => telemetry.record(eventOf({ moment: "resume", facts: null as never }))).not.toThrow();
	});

	it("leave no claim, cursor or id in metrics or spans, in all of the decision tables", async () => {
		const { telemetry, collect } = start();
		const secrets = new Set<string>();
		await tracer.startActiveSpan("request", async (span) => {
			for (const one of await readCases()) {
				const { guard, heard } = await guardOf(one.data);
				ask(guard, one.moment, one.question);
				for (const event of heard) telemetry.record(event);
				for (const secret of stringsOf(one.question)) if (secret.length > 3) secrets.add(secret);
			}
			span.end();
		});
		// What is in the facts and in every attribute by itself.
		for (const word of ["session", "call", "resume", "delivery", "known", "unknown", "none", "code"])
			secrets.delete(word);
		const exported = [...(await collect()).values()].flatMap(({ dataPoints }) =>
			dataPoints.map(({ attributes }) => attributes),
		);
		const [span] = spans.getFinishedSpans();
		expect(exported.length).toBeGreaterThan(50);
		expect(span?.events.length).toBeGreaterThan(0);
		const values = [...exported, ...(span?.events ?? []).map(({ attributes }) => attributes ?? {})].flatMap(
			(one) => Object.values(one),
		);
		expect([...new Set(values)].filter((value) => secrets.has(String(value)))).toEqual([]);
	}, 60_000);
});

function stringsOf(value: unknown): string[] {
	if (typeof value === "string") return [value];
	return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsOf) : [];
}

describe("the active span", () => {
	it("has an event for a refusal, and none for what proceeds", () => {
		const { telemetry } = start();
		tracer.startActiveSpan("POST /mcp", (span) => {
			telemetry.record(eventOf());
			telemetry.record(proceeding());
			span.end();
		});
		const [span] = spans.getFinishedSpans();
		expect(span?.events.map(({ name, attributes }) => ({ name, attributes }))).toEqual([
			{
				name: "mcp.decision",
				attributes: {
					"mcp_resume_guard.moment": "call",
					"mcp_resume_guard.outcome": "refuse",
					"mcp_resume_guard.code": "tool_unmapped",
					"mcp_resume_guard.revision": "r1",
					"mcp_resume_guard.session": "keep",
					"mcp_resume_guard.status": 403,
				},
			},
		]);
	});

	it("is what the decision log's records name", async () => {
		const sink = memorySink();
		const log = await createDecisionLog({ sinks: [sink], trace: activeSpan });
		tracer.startActiveSpan("POST /mcp", (span) => {
			log.record(eventOf());
			span.end();
		});
		log.record(eventOf());
		await log.flush();
		const [span] = spans.getFinishedSpans();
		const [within, without] = sink.entries.map(({ record }) => record);
		expect(within).toMatchObject({
			trace_id: span?.spanContext().traceId,
			span_id: span?.spanContext().spanId,
		});
		expect(without).not.toHaveProperty("trace_id");
	});

	it("need not be there", () => {
		expect(() => start().telemetry.record(eventOf())).not.toThrow();
		expect(activeSpan()).toBeUndefined();
	});
});

describe("what is counted elsewhere", () => {
	it("is the event log's buffer, and what was evicted from it", async () => {
		const events = createMemoryEventLog({ eventsPerPrincipal: 3 });
		await events.open("s", "alice");
		const label = { aud: [], scope: [] };
		for (let i = 0; i < 5; i++) await events.append("s", "stream", { message: '{"a":1}', label });
		const { collect } = start({ events });
		const collected = await collect();
		const { events: held, bytes, evictedUnacknowledged } = events.stats();
		expect(evictedUnacknowledged).toBeGreaterThan(0);
		expect(valuesOf(collected, "mcp_resume_guard.events.buffered")).toEqual({ "": held });
		expect(valuesOf(collected, "mcp_resume_guard.events.buffer.size")).toEqual({ "": bytes });
		expect(valuesOf(collected, "mcp_resume_guard.events.evicted")).toEqual({
			false: evictedUnacknowledged,
			true: 0,
		});
		expect(collected.get("mcp_resume_guard.events.buffer.size")?.descriptor.unit).toBe("By");
	});

	it("is what became of the decision log's records, by sink", async () => {
		const bad = { name: "bad", write: () => Promise.reject(new Error("no")) };
		const log = await createDecisionLog({
			sinks: [memorySink(), bad],
			limits: { waiting: 2 },
			onProblem() {},
		});
		for (let i = 0; i < 3; i++) log.record(eventOf());
		await log.flush();
		const { collect } = start({ log });
		const collected = await collect();
		expect(valuesOf(collected, "mcp_resume_guard.log.records")).toMatchObject({
			"memory written": 2,
			"memory lost": 0,
			"bad written": 0,
			"bad lost": 2,
		});
		expect(valuesOf(collected, "mcp_resume_guard.log.decisions.dropped")).toEqual({ "": 1 });
		expect(valuesOf(collected, "mcp_resume_guard.log.buffered")).toEqual({ memory: 0, bad: 0 });
	});

	it("is where a candidate decides otherwise, by both codes", async () => {
		const { guard, heard } = await startGuard();
		const shadow = createShadow({
			candidate: (await startGuard({ ...data, tools: {} })).guard,
		});
		guard.call(FACTS);
		for (const event of heard) shadow.record(event);
		await shadow.flush();
		const collected = await start({ shadow }).collect();
		expect(valuesOf(collected, "mcp_resume_guard.shadow.differences")).toEqual({
			"covered tool_unmapped": 1,
		});
		expect(valuesOf(collected, "mcp_resume_guard.shadow.decisions")).toEqual({
			compared: 1,
			dropped: 0,
			faults: 0,
		});
		expect(valuesOf(collected, "mcp_resume_guard.shadow.widening")).toEqual({ "": 0 });
	});

	it("is observed until it is closed", async () => {
		let asked = 0;
		const events = createMemoryEventLog();
		const stats = () => {
			asked += 1;
			return events.stats();
		};
		const { telemetry, collect } = start({ events: { stats } });
		await collect();
		expect(asked).toBe(1);
		telemetry.close();
		await collect();
		expect(asked).toBe(1);
	});
});

it("counts revisions that come into force, and says when later rules do not", async () => {
	await inTemporaryFolder([{ path: "data.json", content: JSON.stringify(data) }], async (folder) => {
		const path = join(folder, "data.json");
		const { telemetry, collect } = start();
		let hasFailed = () => {};
		const failed = new Promise<void>((resolve) => {
			hasFailed = resolve;
		});
		const guard = await createResumeGuard({
			data: path,
			watch: true,
			onReloadError(error) {
				telemetry.reloadFailed(error);
				hasFailed();
			},
		});
		const stop = telemetry.watch(guard);
		try {
			expect(valuesOf(await collect(), "mcp_resume_guard.reload.failing")).toEqual({ "": 0 });
			const active = new Promise<void>((resolve) => guard.onRevision(resolve));
			writeFileSync(path, JSON.stringify({ ...data, tools: {} }));
			await active;
			writeFileSync(path, "{");
			await failed;
			const collected = await collect();
			expect(valuesOf(collected, "mcp_resume_guard.reload.failing")).toEqual({ "": 1 });
			expect(valuesOf(collected, "mcp_resume_guard.reloads")).toEqual({
				active: 1,
				"failed data_invalid": 1,
			});
			telemetry.reloadFailed({ code: "a b" });
			expect(valuesOf(await collect(), "mcp_resume_guard.reloads")).toMatchObject({ "failed _OTHER": 1 });
		} finally {
			stop();
			guard.close();
		}
	});
});

it("uses the meter of the SDK that is registered", async () => {
	const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
	const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
	metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
	try {
		createTelemetry().record(eventOf());
		await reader.forceFlush();
		const [{ scopeMetrics } = { scopeMetrics: [] }] = exporter.getMetrics();
		expect(scopeMetrics.map(({ scope }) => scope.name)).toEqual(["mcp-resume-guard"]);
	} finally {
		metrics.disable();
	}
});

it("does nothing without an SDK", () => {
	const telemetry = createTelemetry();
	telemetry.record(eventOf());
	telemetry.close();
});

it.each([
	["an unknown option", { tracer: 1 }],
	["a meter that is none", { meter: {} }],
	["an event log without counts", { events: {} }],
	["a decision log without counts", { log: {} }],
])("throws TypeError for %s", (_, options) => {
	expect(() => createTelemetry(options as never)).toThrow(TypeError);
});
