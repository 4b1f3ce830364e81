import { describe, expect, it } from "vitest";
import { createResumeGuard, type DecisionEvent, type PolicyData, type ResumeGuard } from "../../src/index.ts";
import { createShadow, type ShadowDifference, type ShadowOptions } from "../../src/log/index.ts";
import { data, eventOf, FACTS, startGuard, startLog } from "../log/support.ts";
import { ask } from "../tables/run.ts";

const SEARCH = "https://mcp.example.com/tools/search";
const FETCH = "https://mcp.example.com/tools/fetch";
const request = { method: "GET", transport: "streamable-http", session: "known" } as const;
const binding = {
	iss: "https://as.example.com",
	sub: "alice",
	client_id: "desktop",
	aud: ["https://mcp.example.com"],
	scope: [],
};
const resume = {
	now: 1796000000,
	request,
	session: { binding, transport: "streamable-http", opened_at: 1795990000 },
	presented: { ...binding, aud: [SEARCH], exp: 1796003600 },
	cursor: { last_event_id: "41", position: "retained" },
	pending: [
		{ id: "42", tool: "search", aud: [SEARCH], scope: [] },
		{ id: "43", tool: "fetch", aud: [FETCH], scope: [] },
	],
} as const;

/** Active rules and a candidate's, and what comes of a question to the first. */
async function startBoth(candidate: Partial<PolicyData>, options: Partial<ShadowOptions> = {}) {
	const { guard, heard } = await startGuard();
	const differences: ShadowDifference[] = [];
	const shadow = createShadow({
		candidate: await createResumeGuard({ data: { ...data, ...candidate }, onFault() {} }),
		onDifference: (difference) => void differences.push(difference),
		...options,
	});
	return {
		guard,
		shadow,
		differences,
		async decide(moment: "session" | "call" | "resume" | "delivery", question: unknown) {
			heard.length = 0;
			ask(guard, moment, question);
			for (const event of heard) shadow.record(event);
			await shadow.flush();
			return differences.at(-1);
		},
	};
}

describe("a candidate beside the active rules", () => {
	it("says nothing where it decides the same", async () => {
		const { decide, shadow, differences } = await startBoth({});
		await decide("resume", resume);
		await decide("call", { ...FACTS });
		expect(differences).toEqual([]);
		expect(shadow.stats()).toEqual({
			compared: 2,
			skipped: 0,
			dropped: 0,
			faults: 0,
			differences: 0,
			widening: 0,
			byCode: {},
		});
	});

	it("says in which members it decides otherwise, and that it would let in what is refused", async () => {
		const { decide, guard, shadow } = await startBoth({ coverage: { ...data.coverage, [SEARCH]: [FETCH] } });
		expect(await decide("resume", resume)).toMatchObject({
			moment: "resume",
			outcome: "reauthorize",
			code: "audience_not_covered",
			differences: ["outcome", "code", "deliver", "cursor", "status", "held", "required"],
			widens: true,
			active: { outcome: "reauthorize", deliver: 0 },
			candidate: { outcome: "proceed", deliver: 2 },
			revision: guard.revision,
			candidateRevision: expect.not.stringContaining(guard.revision),
		});
		expect(shadow.stats()).toMatchObject({
			differences: 1,
			widening: 1,
			byCode: { "audience_not_covered → covered": 1 },
		});
	});

	it("widens where it sends more of what is pending, though both refuse the rest", async () => {
		const { decide } = await startBoth({ replay: "prefix" });
		expect(await decide("resume", resume)).toMatchObject({
			differences: ["deliver", "cursor"],
			widens: true,
			candidate: { outcome: "reauthorize", deliver: 1 },
		});
	});

	it("does not widen where it refuses what proceeds, or refuses otherwise", async () => {
		const { decide } = await startBoth({ tools: {}, foreign_principal: "keep" });
		expect(await decide("call", { ...FACTS })).toMatchObject({
			outcome: "proceed",
			widens: false,
			candidate: { code: "tool_unmapped" },
		});
		const stranger = { ...resume, presented: { ...resume.presented, sub: "bob" } };
		expect(await decide("resume", stranger)).toMatchObject({
			differences: ["session", "status"],
			widens: false,
			active: { session: "end", status: 403 },
			candidate: { session: "keep", status: 404 },
		});
	});

	it("is asked at the time that they were asked at", async () => {
		const { decide, differences, guard, shadow } = await startBoth({});
		await decide("call", { ...FACTS, now: 1, presented: { ...FACTS.presented, exp: 2 } });
		// Nothing to ask about has no time; it gets that of the record.
		await decide("call", { presented: { ...FACTS.presented, exp: 2 }, request: FACTS.request, tool: 5 });
		expect(guard.probe.call({ ...FACTS, now: 1e10 }).code).toBe("token_expired");
		expect(differences).toEqual([]);
		expect(shadow.stats().compared).toBe(2);
	});

	it("leaves records in the decision log, masked, beside that of the decision", async () => {
		const { log, records } = await startLog();
		const { decide } = await startBoth({ coverage: { ...data.coverage, [SEARCH]: [FETCH] } }, { log });
		await decide("resume", resume);
		const [record, ...others] = await records();
		expect(others).toEqual([]);
		expect(record).toMatchObject({
			path: "shadow/mcp/resume/decision",
			result: { outcome: "proceed", deliver: 2 },
			custom: {
				moment: "resume",
				outcome: "proceed",
				code: "covered",
				input: "whole",
				shadow: { outcome: "reauthorize", code: "audience_not_covered", widens: true },
			},
		});
		expect(JSON.stringify(record)).not.toContain("alice");
	});
});

describe("what a candidate cannot do", () => {
	type Candidate = ShadowOptions["candidate"];
	const candidateOf = (call: () => never | object): Candidate =>
		({ revision: "c", probe: { session: call, call, resume: call, delivery: call } }) as unknown as Candidate;

	it("hurt the host by throwing, or by what it answers", async () => {
		for (const call of [
			() => {
				throw new Error("no");
			},
			() => null as never,
			() => undefined as never,
			() =>
				new Proxy(
					{},
					{
						get: () => {
							throw new Error("no");
						},
					},
				),
		]) {
			const shadow = createShadow({ candidate: candidateOf(call) });
			expect(() => shadow.record(eventOf())).not.toThrow();
			await shadow.flush();
			expect(shadow.stats()).toMatchObject({ faults: 1, differences: 0 });
		}
	});

	it("decide before the answer", async () => {
		let asked = 0;
		const shadow = createShadow({
			candidate: candidateOf(() => {
				asked += 1;
				return eventOf().decision;
			}),
		});
		shadow.record(eventOf());
		expect(asked).toBe(0);
		await new Promise(setImmediate);
		expect(asked).toBe(1);
	});

	it("keep the process busy: it rests nine times as long as it takes", async () => {
		const spin = 4;
		let busy = 0;
		const shadow = createShadow({
			budget: 1,
			candidate: candidateOf(() => {
				const end = performance.now() + spin;
				while (performance.now() < end);
				busy += spin;
				return eventOf().decision;
			}),
		});
		for (let i = 0; i < 1_000; i++) shadow.record(eventOf());
		const start = performance.now();
		let turns = 0;
		while (performance.now() - start < 400) {
			await new Promise(setImmediate);
			turns += 1;
		}
		expect(busy).toBeGreaterThan(0);
		expect(busy).toBeLessThan(100);
		expect(turns).toBeGreaterThan(100);
	});

	it("have more waiting than was allowed", async () => {
		const shadow = createShadow({ candidate: candidateOf(() => eventOf().decision), waiting: 5 });
		for (let i = 0; i < 20; i++) shadow.record(eventOf());
		await shadow.flush();
		expect(shadow.stats()).toMatchObject({ compared: 5, dropped: 15 });
	});

	it("make up so many codes that they fill the memory", async () => {
		let n = 0;
		const shadow = createShadow({
			candidate: candidateOf(() => ({ ...eventOf().decision, code: `custom:${n++}` })),
			waiting: 2_000,
		});
		for (let i = 0; i < 1_000; i++) shadow.record(eventOf());
		await shadow.flush();
		const { byCode, differences } = shadow.stats();
		expect(differences).toBe(1_000);
		expect(Object.keys(byCode)).toHaveLength(201);
		expect(byCode._OTHER).toBe(800);
	});

	it("fail the host by a listener that throws", async () => {
		const { decide, shadow } = await startBoth(
			{ tools: {} },
			{
				onDifference() {
					throw new Error("no");
				},
			},
		);
		await decide("call", { ...FACTS });
		expect(shadow.stats()).toMatchObject({ compared: 1, differences: 1, faults: 1 });
	});

	it("be heard: its decisions are no decisions of the host", async () => {
		const heard: DecisionEvent[] = [];
		const candidate = await createResumeGuard({ data, onDecision: (event) => void heard.push(event) });
		const shadow = createShadow({ candidate });
		shadow.record(eventOf({ facts: FACTS }));
		await shadow.flush();
		expect(shadow.stats().compared).toBe(1);
		expect(heard).toEqual([]);
	});
});

it("asks about the share that was asked for", async () => {
	const { shadow } = await startBoth({}, { sample: 0 });
	for (let i = 0; i < 50; i++) shadow.record(eventOf({ facts: FACTS }));
	await shadow.flush();
	expect(shadow.stats()).toMatchObject({ compared: 0, skipped: 50 });
});

it("asks the rules that are in force when it asks", async () => {
	let revision = "1";
	const guard = {
		probe: {
			session() {},
			call: () => ({ ...eventOf().decision, code: "custom:x" }),
			resume() {},
			delivery() {},
		},
	};
	const candidate = Object.defineProperty(guard, "revision", {
		get: () => revision,
	}) as unknown as ResumeGuard;
	const differences: ShadowDifference[] = [];
	const shadow = createShadow({ candidate, onDifference: (difference) => void differences.push(difference) });
	for (const next of ["1", "2"]) {
		revision = next;
		shadow.record(eventOf());
		await shadow.flush();
	}
	expect(differences.map(({ candidateRevision }) => candidateRevision)).toEqual(["1", "2"]);
});

it.each([
	["no options", undefined],
	["no candidate", {}],
	["a candidate that is no guard", { candidate: {} }],
	["an unknown option", { candidate: { probe: { resume() {} } }, rate: 1 }],
	["a sample above 1", { candidate: { probe: { resume() {} } }, sample: 2 }],
	["no room", { candidate: { probe: { resume() {} } }, waiting: 0 }],
	["a log that is none", { candidate: { probe: { resume() {} } }, log: {} }],
	["a listener that is none", { candidate: { probe: { resume() {} } }, onDifference: 1 }],
])("throws TypeError for %s", (_, options) => {
	expect(() => createShadow(options as never)).toThrow(TypeError);
});
