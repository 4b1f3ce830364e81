import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { policyCases, readCases } from "../../scripts/tables.ts";
import { readFacts } from "../../src/facts.ts";
import { createResumeGuard, type DecisionEvent, type Moment } from "../../src/index.ts";
import { createMask, type MaskedDecision } from "../../src/log/mask.ts";
import { createPseudonym } from "../../src/log/pseudonym.ts";
import { asked, policyData } from "../arbitraries.ts";
import { ask } from "../tables/run.ts";
import { data, eventOf, FACTS, guardOf, KEY, startGuard } from "./support.ts";

const pseudonym = createPseudonym(KEY);
const mask = createMask({ pseudonym, clearClaims: [] });

const cases = await readCases();
const reaching = policyCases(cases);

describe("the built-in mask, over all decision tables", () => {
	it.each(cases.map((one) => [one.name, one] as const))("%s", async (name, one) => {
		const { guard, heard } = await guardOf(one.data);
		ask(guard, one.moment, one.question);
		const [event] = heard;
		if (event === undefined) throw new Error("not heard");
		const { input, result, isWhole, masked } = mask(event);

		// No value that names somebody, or that an id could be, is left.
		const text = JSON.stringify({ input, result });
		for (const secret of secretsOf(one.question)) expect(text).not.toContain(JSON.stringify(secret));
		for (const pointer of masked) expect(at({ input, result }, pointer)).toMatch(/^hmac:[\w-]{22}$/);

		expect(isWhole).toBe(name in reaching);
		if (!isWhole) return;
		// What is left is a question, and has the same answer.
		expect(readFacts(one.moment, input, guard.data)).toEqual({ facts: input });
		expect(ask(guard, one.moment, input)).toEqual(result);
	});

	test("most cases are whole", () => {
		expect(Object.keys(reaching).length).toBeGreaterThan(600);
	});
});

it("keeps facts such that they are decided alike, whatever they are and whatever the data", async () => {
	let whole = 0;
	await fc.assert(
		fc.asyncProperty(asked, policyData, async ({ moment, question }, given) => {
			const { guard, heard } = await startGuard(given);
			ask(guard, moment, question);
			for (const event of [...heard]) {
				const { input, result, isWhole } = mask(event);
				if (!isWhole) continue;
				whole += 1;
				expect(readFacts(moment, input, guard.data)).toEqual({ facts: input });
				expect(ask(guard, moment, input)).toEqual(result);
			}
		}),
		{ numRuns: 60, endOnFailure: true },
	);
	expect(whole).toBeGreaterThan(50);
});

it("says that they are not where it had to replace what is looked up in the data", () => {
	const long = `https://mcp.example.com/${"x".repeat(3_000)}`;
	for (const facts of [
		{ ...FACTS, tool: "x".repeat(300) },
		{ ...FACTS, tool: "alice" },
		{ ...FACTS, presented: { ...FACTS.presented, aud: ["alice"] } },
		{ ...FACTS, presented: { ...FACTS.presented, scope: ["alice"] } },
		{ ...FACTS, presented: { ...FACTS.presented, aud: [long] } },
	]) {
		const masked = mask(eventOf({ facts }));
		expect(masked.isWhole).toBe(false);
		expect(JSON.stringify(masked)).not.toMatch(/alice|xxxx/);
	}
	for (const claim of ["client_id", "iss"]) {
		const masked = mask(
			eventOf({ facts: { ...FACTS, presented: { ...FACTS.presented, [claim]: "alice" } } }),
		);
		expect(masked.isWhole).toBe(true);
		expect(JSON.stringify(masked)).not.toContain("alice");
	}
});

/** Subjects, keys, and ids of events and requests that are text. */
function secretsOf(value: unknown, secrets: string[] = []): string[] {
	if (typeof value !== "object" || value === null) return secrets;
	for (const [key, member] of Object.entries(value)) {
		const isSecret = [
			"sub",
			"last_event_id",
			"event_id",
			"before",
			"last",
			"id",
			"request_id",
			"jkt",
			"kid",
		].includes(key);
		if (isSecret && typeof member === "string" && !["free", "in_use"].includes(member)) secrets.push(member);
		secretsOf(member, secrets);
	}
	return secrets;
}

function at(document: unknown, pointer: string): unknown {
	return pointer
		.slice(1)
		.split("/")
		.reduce<unknown>(
			(node, segment) => (node as Record<string, unknown>)[decodeURIComponent(segment)],
			document,
		);
}

const opened = {
	iss: "https://as.example.com",
	client_id: "desktop",
	aud: ["https://mcp.example.com"],
	scope: [],
};
const known = (binding: object, presented: object, moment: Moment = "session"): DecisionEvent =>
	eventOf({
		moment,
		facts: {
			moment,
			now: 1,
			request: { method: "POST", transport: "streamable-http", session: "known" },
			session: { binding: { ...opened, ...binding }, transport: "streamable-http", opened_at: 0 },
			presented: { ...opened, exp: 2, sub: "alice", ...presented },
			rpc: "ping",
		},
	});
type Claims = Record<string, unknown>;
const claimsOf = ({ input }: MaskedDecision): { binding: Claims; presented: Claims } => {
	const { session, presented } = input as { session: { binding: Claims }; presented: Claims };
	return { binding: session.binding, presented };
};

describe("pseudonyms", () => {
	it("are the same for the same subject, wherever it is, and others for others", () => {
		const same = claimsOf(mask(known({ sub: "alice" }, { sub: "alice" })));
		expect(same.binding.sub).toBe(same.presented.sub);
		const other = claimsOf(mask(known({ sub: "alice" }, { sub: "bob" })));
		expect(other.binding.sub).toBe(same.binding.sub);
		expect(other.presented.sub).not.toBe(same.binding.sub);
	});

	it("are others for another kind of value, and under another key", () => {
		const { binding } = claimsOf(mask(known({ sub: "alice", org_id: "alice" }, { org_id: "alice" })));
		expect(binding.org_id).toMatch(/^hmac:/);
		expect(binding.org_id).not.toBe(binding.sub);
		const elsewhere = createMask({ pseudonym: createPseudonym(undefined), clearClaims: [] })(
			known({ sub: "alice" }, {}),
		);
		expect(claimsOf(elsewhere).binding.sub).not.toBe(binding.sub);
	});

	it("stand for whatever a further claim is, and equal as JSON is equal", () => {
		const { binding, presented } = claimsOf(
			mask(known({ sub: "alice", act: { sub: "bot", iss: "x" } }, { act: { iss: "x", sub: "bot" } })),
		);
		expect(binding.act).toBe(presented.act);
		expect(JSON.stringify({ binding, presented })).not.toContain("bot");
	});

	it("stand for a key, by the name of its confirmation method", () => {
		const cnf = { jkt: "thumbprint", "x5t#S256": "thumbprint" };
		const { binding, presented } = claimsOf(mask(known({ sub: "alice", cnf }, { cnf })));
		expect(binding.cnf).toEqual(presented.cnf);
		expect(Object.keys(binding.cnf as object)).toEqual(["jkt", "x5t#S256"]);
		expect(JSON.stringify(binding)).not.toContain("thumbprint");
		const odd = claimsOf(mask(known({ sub: "alice", cnf: { "a-secret": 1 } }, { cnf: { "a-secret": 2 } })));
		expect(JSON.stringify(odd)).not.toContain("a-secret");
		expect(odd.binding.cnf).not.toEqual(odd.presented.cnf);
	});

	it("stand for a client that is its own subject, everywhere", () => {
		const { binding, presented } = claimsOf(
			mask(known({ sub: "robot", client_id: "robot" }, { sub: "alice", client_id: "robot" })),
		);
		expect(JSON.stringify({ binding, presented })).not.toContain("robot");
		expect(binding.client_id).toBe(presented.client_id);
	});
});

it("keeps a claim as it is where the operator says so, and never the subject", () => {
	const event = known({ sub: "alice", org_id: "acme", sub_id: "x" }, { org_id: "acme" });
	const { binding } = claimsOf(createMask({ pseudonym, clearClaims: ["org_id", "sub"] })(event));
	expect(binding.org_id).toBe("acme");
	expect(binding.sub).toMatch(/^hmac:/);
});

describe("a question that is none", () => {
	const secret = "S3CRET";
	const questions: [string, unknown][] = [
		["text", secret],
		["a list", [secret]],
		["nothing", null],
		["unknown members", { request: { method: "POST", authorization: secret }, token: secret, [secret]: 1 }],
		[
			"members of another type",
			{ request: secret, session: secret, presented: secret, cursor: [secret], event: secret },
		],
		["members with another value", { request: { method: secret, transport: secret, session: secret } }],
		[
			"claims of a token that are no identity",
			{ presented: { jti: secret, sid: secret, email: secret, name: secret } },
		],
		["a subject of another type", { presented: { sub: { name: secret } } }],
		["an anonymous binding with more in it", { session: { binding: { anonymous: secret, x: secret } } }],
		["events with payloads", { pending: [{ id: secret, message: secret, aud: [], scope: [] }] }],
		["an event that is no object", { pending: [secret] }],
		["an audience that is an object", { presented: { aud: { x: secret }, scope: [{ x: secret }] } }],
		["a cursor that is a token", { cursor: { last_event_id: secret, position: secret } }],
		["a request id that is text", { event: { request_id: secret, aud: [], scope: [] } }],
	];
	it.each(questions)("%s: only what is known of a question is kept", async (_, question) => {
		const { guard, heard } = await startGuard();
		for (const moment of ["session", "call", "resume", "delivery"] as const) ask(guard, moment, question);
		expect(heard).toHaveLength(4);
		for (const event of heard) {
			const masked = mask(event);
			expect(JSON.stringify(masked)).not.toContain(secret);
			expect(masked.isWhole).toBe(false);
		}
	});

	it("is kept as far as it is known, with the place that was wrong", async () => {
		const { guard, heard } = await startGuard();
		const { request, presented } = eventOf().facts;
		ask(guard, "call", { request, presented, tool: 5 });
		const [event] = heard as [DecisionEvent];
		expect(mask(event)).toMatchObject({
			input: {
				moment: "call",
				request,
				presented: { iss: "https://as.example.com", aud: ["https://mcp.example.com"] },
			},
			result: { code: "invalid_facts", detail: "/tool: must be string" },
			erased: ["/input/tool"],
			isWhole: false,
		});
	});
});

it("says nothing of a member that nobody knows", async () => {
	const { guard, heard } = await startGuard();
	const { request } = eventOf().facts;
	ask(guard, "delivery", { request: { ...request, "a-secret": 1 }, event: { aud: [], scope: [] } });
	const [event] = heard as [DecisionEvent];
	expect(event.decision).toMatchObject({ detail: expect.stringContaining("a-secret") });
	expect(mask(event).result).toMatchObject({ detail: "/request: must NOT have additional properties" });
});

it("leaves out lists that are too long, before it computes anything for them", () => {
	const needs = Array.from({ length: 20_000 }, (_, index) => ({
		index,
		event_id: `${index}`,
		before: `${index - 1}`,
		aud: [],
		scope: [],
	}));
	const event = eventOf({
		moment: "resume",
		facts: {
			moment: "resume",
			now: 1,
			request: { method: "GET", transport: "sse", session: "unknown" },
			cursor: { last_event_id: "-1", position: "retained" },
			pending: { count: 20_000, last: "19999", needs },
			open: [],
		},
	});
	const masked = mask(event);
	expect(masked).toMatchObject({ isTruncated: true, isWhole: false, erased: ["/input/pending/needs"] });
	expect(JSON.stringify(masked).length).toBeLessThan(2_000);
});

it("replaces names that are longer than names are, and text that is not well-formed", () => {
	const tool = "x".repeat(10_000);
	expect(mask(eventOf({ facts: { ...eventOf().facts, tool } })).input.tool).toMatch(/^hmac:/);
	const broken = { request: eventOf().facts.request, tool: "\ud800" };
	expect(mask(eventOf({ facts: broken })).input.tool).toMatch(/^hmac:/);
});

it("cannot be made to set a prototype", () => {
	const facts = JSON.parse(
		`{"presented": {"__proto__": {"polluted": 1}, "sub": "alice"}, "__proto__": {"polluted": 1}}`,
	);
	const { input } = mask(eventOf({ facts }));
	expect((input as { polluted?: unknown }).polluted).toBeUndefined();
	expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

it("masks the facts of hosts that ask about raw claims and single events", async () => {
	const guard = await createResumeGuard({
		data,
		onDecision(event) {
			const { input, isWhole } = mask(event);
			expect(isWhole).toBe(true);
			expect(JSON.stringify(input)).not.toMatch(/alice|"e1"|jti|secret/);
		},
	});
	expect(
		guard.resume({
			now: 1,
			request: { method: "GET", transport: "streamable-http", session: "known" },
			session: {
				binding: { ...opened, sub: "alice", jti: "secret", exp: 5 },
				transport: "streamable-http",
				opened_at: 0,
			},
			presented: { ...opened, sub: "alice", jti: "secret", exp: 5 },
			cursor: { last_event_id: "e0", position: "retained" },
			pending: [{ id: "e1", tool: "search", aud: ["https://mcp.example.com/tools/search"], scope: [] }],
		}).outcome,
	).toBe("proceed");
	expect.assertions(3);
});
