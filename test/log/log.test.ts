import { setTimeout as wait } from "node:timers/promises";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import pkg from "../../package.json" with { type: "json" };
import { ResumeGuardError } from "../../src/index.ts";
import {
	createDecisionLog,
	type DecisionLogProblem,
	type DecisionLogSink,
	decisionLogSchema,
	readDecisionLogEvent,
} from "../../src/log/index.ts";
import { ask } from "../tables/run.ts";
import { eventOf, KEY, memorySink, proceeding, startGuard, startLog } from "./support.ts";

const unavailable = (): never => {
	throw new ResumeGuardError("log_unavailable", "not now");
};

describe("a record", () => {
	it("is an event of OPA's decision log", async () => {
		const { log, records } = await startLog({ labels: { app: "mcp" } });
		const before = new Date().toISOString();
		log.record(eventOf());
		const [record] = await records();
		expect(record).toEqual({
			labels: { id: expect.stringMatching(/^[0-9a-f-]{36}$/), version: pkg.version, app: "mcp" },
			decision_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
			revision: "r1",
			path: "mcp/call/decision",
			input: {
				...eventOf().facts,
				presented: { ...eventOf().facts.presented, sub: expect.stringMatching(/^hmac:/) },
			},
			result: eventOf().decision,
			masked: ["/input/presented/sub"],
			timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
			metrics: { timer_server_handler_ns: 250_000 },
			custom: { moment: "call", outcome: "refuse", code: "tool_unmapped", input: "whole" },
		});
		expect(record?.timestamp && record.timestamp >= before).toBe(true);
	});

	it("has the revision under the name of the bundle, and the host's own id", async () => {
		const { log, records } = await startLog({ bundle: "mcp", labels: { id: "host-1" } });
		log.record(eventOf());
		const [record] = await records();
		expect(record).toMatchObject({ bundles: { mcp: { revision: "r1" } }, labels: { id: "host-1" } });
		expect(record).not.toHaveProperty("revision");
	});

	it("has the span that was active when it was decided", async () => {
		const span = { trace_id: "0af7651916cd43dd8448eb211c80319c", span_id: "b7ad6b7169203331" };
		let active: typeof span | undefined = span;
		const { log, records } = await startLog({ trace: () => active });
		log.record(eventOf());
		active = { trace_id: "no hex", span_id: "\n" };
		log.record(eventOf());
		active = undefined;
		log.record(eventOf());
		const [first, ...others] = await records();
		expect(first).toMatchObject(span);
		for (const other of others) expect(other).not.toHaveProperty("trace_id");
	});

	it("is one for each decision, and each has an id of its own", async () => {
		const { guard, heard } = await startGuard();
		for (const moment of ["session", "call", "resume", "delivery"] as const) ask(guard, moment, {});
		const { log, records } = await startLog();
		for (const event of heard) log.record(event);
		const written = await records();
		expect(written.map(({ path }) => path)).toEqual(
			["session", "call", "resume", "delivery"].map((moment) => `mcp/${moment}/decision`),
		);
		expect(new Set(written.map(({ decision_id }) => decision_id)).size).toBe(4);
		expect(log.stats()).toMatchObject({ recorded: 4, dropped: 0, maskErrors: 0 });
	});

	it("follows its schema, and can be read back", async () => {
		const { log, records } = await startLog({ bundle: "b", limits: { recordBytes: 1_000 } });
		log.record(eventOf());
		log.record(eventOf({ facts: "none" as never }));
		log.record(
			eventOf({ facts: { ...eventOf().facts, open: Array(400).fill({ aud: ["https://a"], scope: [] }) } }),
		);
		log.record(eventOf({ decision: null as never }));
		log.recordShadow(proceeding(), {
			revision: "r0",
			outcome: "refuse",
			code: "tool_unmapped",
			differences: ["outcome"],
			widens: true,
		});
		const validate = new Ajv2020({
			strict: true,
			strictRequired: false,
			formats: { uuid: true, "date-time": true },
		}).compile(decisionLogSchema);
		const written = await records();
		expect(written).toHaveLength(5);
		for (const record of written) {
			expect(validate(record), JSON.stringify(validate.errors)).toBe(true);
			expect(readDecisionLogEvent(JSON.stringify(record))).toEqual({ record });
		}
	});
});

it.each([
	["not json", "not JSON"],
	["[]", "/: must be object"],
	["{}", "/decision_id: must be string"],
	['{"decision_id": "1", "timestamp": "", "path": "other", "custom": {}}', "/path: not of a moment"],
])("reading back %s says what is wrong", (line, problem) => {
	expect(readDecisionLogEvent(line)).toEqual({ problem });
});

describe("sampling", () => {
	it("leaves out what proceeds, and never a refusal", async () => {
		const { log, records } = await startLog({ sample: 0 });
		for (let i = 0; i < 100; i++) {
			log.record(proceeding());
			log.record(eventOf());
		}
		expect((await records()).map(({ custom }) => custom.outcome)).toEqual(Array(100).fill("refuse"));
		expect(log.stats().skipped).toBe(100);
	});

	it("keeps about the share that was asked for", async () => {
		const { log, records } = await startLog({ sample: 0.5 });
		for (let i = 0; i < 2_000; i++) log.record(proceeding());
		const { length } = await records();
		expect(length).toBeGreaterThan(800);
		expect(length).toBeLessThan(1_200);
		expect(log.stats().skipped).toBe(2_000 - length);
	});
});

describe("a line", () => {
	it("is one line, whatever is in it", async () => {
		const sink = memorySink();
		const log = await createDecisionLog({ sinks: [sink] });
		const nasty = 'a\n\r\t\u0000\u001b[31m\u007f\u0085\u009b\u2028\u2029\u202e\u2066"\\{}';
		log.record(eventOf({ facts: { ...eventOf().facts, tool: nasty }, revision: `${nasty}\ud800` }));
		await log.flush();
		const [entry] = sink.entries;
		expect(entry?.json).toMatch(/^[\x20-\x7e]*$/);
		const record = JSON.parse(entry?.json ?? "");
		expect(record.input.tool).toBe(nasty);
		expect(record.revision).toBe(`${nasty}\ud800`);
	});

	it("is never longer than the limit: it loses its lists, and then its facts", async () => {
		const { log, records } = await startLog({ limits: { recordBytes: 4_000 } });
		const { facts } = eventOf();
		const open = Array.from({ length: 100 }, (_, id) => ({
			request_id: `${id}`,
			aud: ["https://a"],
			scope: [],
		}));
		log.record(eventOf({ facts: { ...facts, open } }));
		const aud = Array.from({ length: 900 }, (_, id) => `https://mcp.example.com/${id}`);
		log.record(eventOf({ facts: { ...facts, presented: { ...facts.presented, aud } as never } }));
		const [first, second] = await records();
		expect(first).toMatchObject({
			input: { tool: "search" },
			erased: ["/input/open"],
			custom: { input: "partial", truncated: true },
		});
		expect(first?.input).not.toHaveProperty("open");
		expect(first?.masked).toEqual(["/input/presented/sub"]);
		expect(second).toMatchObject({
			result: { outcome: "refuse", code: "tool_unmapped" },
			erased: ["/input"],
			custom: { input: "none", truncated: true },
		});
		expect(second).not.toHaveProperty("input");
		for (const record of [first, second]) expect(JSON.stringify(record).length).toBeLessThan(4_000);
	});
});

describe("what cannot be masked", () => {
	const hostile = new Proxy(
		{},
		{
			ownKeys: () => ["presented"],
			get: () => {
				throw new Error("S3CRET");
			},
		},
	);
	const deep = JSON.parse(`${'{"x":'.repeat(50_000)}1${"}".repeat(50_000)}`);
	it.each([
		["facts that throw", eventOf({ facts: hostile as never })],
		[
			"facts without an end",
			eventOf({
				facts: { ...eventOf().facts, presented: { ...eventOf().facts.presented, act: deep } } as never,
			}),
		],
		[
			"a decision that is none",
			eventOf({
				decision: {
					get outcome(): never {
						throw new Error("S3CRET");
					},
				} as never,
			}),
		],
	])("leaves a record without facts: %s", async (_, event) => {
		const problems: DecisionLogProblem[] = [];
		const { log, records } = await startLog({ onProblem: (problem) => void problems.push(problem) });
		expect(() => log.record(event)).not.toThrow();
		const [record] = await records();
		expect(record).toMatchObject({
			path: "mcp/call/decision",
			revision: "r1",
			custom: { moment: "call", input: "none", mask_error: true },
		});
		expect(record).not.toHaveProperty("input");
		expect(JSON.stringify(record)).not.toContain("S3CRET");
		expect(log.stats().maskErrors).toBe(1);
		expect(problems).toMatchObject([{ kind: "masked", count: 1 }]);
	});
});

describe("a sink that is no good", () => {
	const problemsOf = async (sink: DecisionLogSink, events: number, limits = {}) => {
		const problems: DecisionLogProblem[] = [];
		const good = memorySink("good");
		const log = await createDecisionLog({
			sinks: [sink, good],
			limits,
			onProblem: (problem) => void problems.push(problem),
		});
		for (let i = 0; i < events; i++) {
			log.record(eventOf());
			await new Promise(setImmediate);
		}
		await log.flush(0.3);
		// Nobody waits for another's sink.
		expect(good.entries).toHaveLength(events);
		return { log, problems, stats: log.stats().sinks[0] };
	};

	it("throws: its records are lost, counted, and told of once", async () => {
		const { stats, problems } = await problemsOf(
			{
				name: "bad",
				write() {
					throw new Error("no");
				},
			},
			3,
		);
		expect(stats).toMatchObject({ name: "bad", written: 0, lost: 3, dropped: 0 });
		expect(problems).toMatchObject([{ sink: "bad", kind: "lost", count: 1 }]);
	});

	it("rejects", async () => {
		const { stats } = await problemsOf({ name: "bad", write: () => Promise.reject(new Error("no")) }, 3);
		expect(stats).toMatchObject({ written: 0, lost: 3 });
	});

	it("never answers: it is given up after a while", async () => {
		const signals: AbortSignal[] = [];
		const { stats } = await problemsOf(
			{
				name: "bad",
				write(_, signal) {
					signals.push(signal);
					return new Promise(() => {});
				},
			},
			2,
			{ writeTimeout: 0.05 },
		);
		expect(stats).toMatchObject({ written: 0, lost: 2 });
		expect(signals.every(({ aborted }) => aborted)).toBe(true);
	});

	it("takes nothing, or what is no number", async () => {
		const { stats } = await problemsOf({ name: "bad", write: () => 0 }, 1);
		expect(stats).toMatchObject({ written: 0, lost: 1 });
		const other = await problemsOf({ name: "bad", write: () => "x" as never }, 1);
		expect(other.stats).toMatchObject({ written: 0, lost: 1 });
	});

	it("is not there for a while: records are kept, in order, and written when it is", async () => {
		let failures = 2;
		const good = memorySink("late");
		const late: DecisionLogSink = {
			name: "late",
			write: (batch) => (failures-- > 0 ? unavailable() : good.write(batch, AbortSignal.abort())),
		};
		const log = await createDecisionLog({ sinks: [late], onProblem() {} });
		for (const revision of ["1", "2", "3"]) log.record(eventOf({ revision }));
		await log.flush();
		expect(good.entries.map(({ record }) => record.revision)).toEqual(["1", "2", "3"]);
		expect(log.stats().sinks[0]).toMatchObject({
			written: 3,
			lost: 0,
			retried: 2,
			buffered: 0,
			bufferedBytes: 0,
		});
	});

	it("takes a part: the rest comes again, and nothing twice", async () => {
		const good = memorySink();
		const log = await createDecisionLog({
			sinks: [
				{
					name: "slow",
					write(batch) {
						good.write(batch.slice(0, 2), AbortSignal.abort());
						return 2;
					},
				},
			],
		});
		for (let i = 0; i < 5; i++) log.record(eventOf({ revision: `${i}` }));
		await log.flush();
		expect(good.entries.map(({ record }) => record.revision)).toEqual(["0", "1", "2", "3", "4"]);
	});

	it("is never there: the oldest are dropped, what may proceed first, and the close has an end", async () => {
		const problems: DecisionLogProblem[] = [];
		const kept: string[] = [];
		let isDown = true;
		const log = await createDecisionLog({
			sinks: [
				{
					name: "down",
					write: (batch) =>
						isDown ? unavailable() : void kept.push(...batch.map(({ record }) => record.revision ?? "")),
				},
			],
			limits: { bufferEvents: 8 },
			onProblem: (problem) => void problems.push(problem),
		});
		log.record(eventOf({ revision: "in flight" }));
		await new Promise(setImmediate);
		for (let i = 0; i < 6; i++) log.record(proceeding({ revision: `proceed ${i}` }));
		log.record(proceeding({ revision: "one too many" }));
		for (let i = 0; i < 4; i++) log.record(eventOf({ revision: `refuse ${i}` }));
		await log.flush(0.01);
		expect(log.stats().sinks[0]).toMatchObject({ dropped: 3, buffered: 9 });
		isDown = false;
		await log.flush();
		expect(kept).toEqual([
			"in flight",
			...[2, 3, 4, 5].map((i) => `proceed ${i}`),
			...[0, 1, 2, 3].map((i) => `refuse ${i}`),
		]);
		isDown = true;
		log.record(eventOf());
		const start = performance.now();
		await log.close(0.2);
		expect(performance.now() - start).toBeLessThan(2_000);
		expect(log.stats().sinks[0]?.dropped).toBeGreaterThanOrEqual(3);
		// What was not told at once is told at the end.
		const told = problems.filter(({ kind }) => kind === "dropped").reduce((sum, { count }) => sum + count, 0);
		expect(told).toBeGreaterThanOrEqual(4);
		log.record(eventOf());
		expect(log.stats().dropped).toBe(1);
	});

	it("is reported once in each period", async () => {
		const problems: DecisionLogProblem[] = [];
		const log = await createDecisionLog({
			sinks: [{ name: "bad", write: () => Promise.reject(new Error("no")) }],
			onProblem: (problem) => void problems.push(problem),
			reportEvery: 0.05,
		});
		for (let i = 0; i < 5; i++) {
			log.record(eventOf());
			await log.flush();
		}
		expect(problems.map(({ count }) => count)).toEqual([1]);
		await wait(100);
		expect(problems.map(({ count }) => count)).toEqual([1, 4]);
	});

	it("does not become worse by a listener that throws", async () => {
		const log = await createDecisionLog({
			sinks: [{ name: "bad", write: () => Promise.reject(new Error("no")) }],
			onProblem() {
				throw new Error("nor this");
			},
		});
		log.record(eventOf());
		await log.flush();
		expect(log.stats().sinks[0]).toMatchObject({ lost: 1 });
	});
});

it("tells sinks of one name apart", async () => {
	const log = await createDecisionLog({ sinks: [memorySink("a"), memorySink("b"), memorySink("a")] });
	expect(log.stats().sinks.map(({ name }) => name)).toEqual(["a", "b", "a 2"]);
});

it("takes part in no decision: nothing is masked or written until the answer is out", async () => {
	const sink = memorySink();
	const log = await createDecisionLog({ key: KEY, sinks: [sink] });
	log.record(eventOf());
	expect(sink.entries).toEqual([]);
	await new Promise(setImmediate);
	expect(sink.entries).toHaveLength(1);
});

it("drops and counts what comes faster than it can be masked", async () => {
	const { log, records } = await startLog({ limits: { waiting: 10 }, onProblem() {} });
	for (let i = 0; i < 25; i++) log.record(eventOf());
	expect(log.stats().dropped).toBe(15);
	expect(await records()).toHaveLength(10);
});

it.each([
	["no options", undefined],
	["no sinks", {}],
	["an empty list of sinks", { sinks: [] }],
	["a sink that is none", { sinks: [{ name: "x" }] }],
	["an unknown option", { sinks: [memorySink()], samples: 1 }],
	["a sample above 1", { sinks: [memorySink()], sample: 1.5 }],
	["a sample that is no number", { sinks: [memorySink()], sample: "1" }],
	["a short key", { sinks: [memorySink()], key: "short" }],
	["an empty key", { sinks: [memorySink()], key: "" }],
	["a key of another type", { sinks: [memorySink()], key: 5 }],
	["labels that are no text", { sinks: [memorySink()], labels: { a: 1 } }],
	["an unknown limit", { sinks: [memorySink()], limits: { record: 1 } }],
	["a limit of 0", { sinks: [memorySink()], limits: { recordBytes: 0 } }],
	["sub in the clear", { sinks: [memorySink()], clearClaims: ["sub"] }],
])("throws TypeError for %s", async (_, options) => {
	await expect(createDecisionLog(options as never)).rejects.toThrow(TypeError);
});
