import { describe, expect, it } from "vitest";
import { createResumeGuard, type PolicyData } from "../../src/index.ts";
import { decidersByData, mergePatch, readCases, runTables } from "../../src/tables.ts";

const data: PolicyData = {
	resources: ["https://mcp.example.com"],
	tools: {
		search: { aud: ["https://mcp.example.com/tools/search"], scope: [] },
		fetch: { aud: ["https://mcp.example.com/tools/fetch"], scope: [] },
	},
	coverage: { "https://mcp.example.com": ["https://mcp.example.com/tools/*"] },
};

const facts = {
	moment: "call",
	now: 1796000000,
	request: { method: "POST", transport: "streamable-http", session: "none" },
	presented: {
		iss: "https://as.example.com",
		sub: "alice",
		aud: ["https://mcp.example.com"],
		exp: 1796003600,
	},
	tool: "fetch",
};

const deciders = () => decidersByData((of) => createResumeGuard({ data: of }));

function run(...cases: object[]) {
	return runTables([{ name: "t", document: { title: "t", facts, cases } }], data, deciders());
}

describe("what is wanted of a decision", () => {
	it.each([
		["one member", { outcome: "proceed" }, []],
		["every member that is there", { outcome: "proceed", code: "covered", status: 200, drift: [] }, []],
		["a member of another value", { outcome: "proceed", code: "undecided" }, ["code"]],
		["a list with more in it", { drift: ["aud"] }, ["drift"]],
		["a member that is not there", { deliver: 0 }, ["deliver"]],
		["null, where nothing is", { held: null }, ["held"]],
		["a name of every object", { toString: "covered", constructor: 1 }, ["toString", "constructor"]],
		[
			"an object, in any order of its members",
			{ label: { tool: "fetch", scope: [], aud: ["https://mcp.example.com/tools/fetch"] } },
			[],
		],
		["a part of an object", { label: { tool: "fetch" } }, ["label"]],
	])("%s", async (_, want, differs) => {
		const [result] = await run({ name: "one", facts: {}, want });
		expect(result).toMatchObject({ name: "t: one", moment: "call", code: "covered", want, differs });
		expect(result?.ok).toBe(differs.length === 0);
	});
});

describe("facts that cannot be decided pass no case that does not want just that", () => {
	const noFacts = { request: { method: "GET" } };
	const session = { binding: { sub: "alice" }, transport: "streamable-http", opened_at: 1 };
	const noRecord = { request: { session: "known" }, session };
	it.each<[string, object, object, string[]]>([
		["an outcome alone", noFacts, { outcome: "refuse" }, ["code"]],
		["their code", noFacts, { outcome: "refuse", code: "invalid_facts" }, []],
		["another code", noFacts, { code: "covered" }, ["code"]],
		["an outcome alone, of a record that is none", noRecord, { outcome: "refuse" }, ["code"]],
		["its code", noRecord, { code: "policy_fault" }, []],
	])("%s", async (_, change, want, differs) => {
		const [result] = await run({ name: "one", facts: change, want });
		expect(result).toMatchObject({ got: { outcome: "refuse" }, ok: differs.length === 0, differs });
	});
});

it("lays the data of a case over its table's, and that over what is beneath", async () => {
	const narrow = { facts: { presented: { aud: ["https://mcp.example.com/tools/search"] } } };
	const coverage = { "https://mcp.example.com/tools/search": ["https://mcp.example.com/tools/fetch"] };
	const results = await run(
		{ name: "as it is", ...narrow, want: { code: "audience_not_covered" } },
		{ name: "covered", ...narrow, data: { coverage }, want: { code: "covered" } },
		{ name: "unmapped", ...narrow, data: { tools: { fetch: null } }, want: { code: "tool_unmapped" } },
	);
	expect(results.map(({ ok }) => ok)).toEqual([true, true, true]);
	expect(results[0]?.facts).toMatchObject({ tool: "fetch", now: 1796000000 });
	expect(results[0]?.facts).not.toHaveProperty("moment");
});

it("creates one decider for each data", async () => {
	let created = 0;
	const cases = ["a", "b", "c"].map((name) => ({ name, facts: {}, want: { code: "covered" } }));
	const other = { name: "d", facts: {}, data: { clock_skew: 0 }, want: { code: "covered" } };
	const counted = decidersByData((of) => {
		created += 1;
		return createResumeGuard({ data: of });
	});
	await runTables([{ name: "t", document: { title: "t", facts, cases: [...cases, other] } }], data, counted);
	expect(created).toBe(2);
});

it("keeps no more deciders than some, however many data there are", async () => {
	let created = 0;
	const all = decidersByData((of) => {
		created += 1;
		return createResumeGuard({ data: of });
	});
	const { data: complete } = await createResumeGuard({ data });
	const of = (index: number) => ({ ...complete, identity_claims: [`claim_${index}`] });
	for (let index = 0; index < 101; index++) await all(of(index));
	await all(of(100));
	expect(created).toBe(101);
	await all(of(0));
	expect(created).toBe(102);
});

describe("says where a table is wrong", () => {
	const one = { name: "one", facts: {}, want: { code: "covered" } };
	it.each<[string, unknown, string, RegExp]>([
		["no table", [], "table_invalid", /t: \/: must be object/],
		["no case", { title: "t", cases: [] }, "table_invalid", /t: \/cases: /],
		["a member that there is not", { title: "t", rows: [], cases: [one] }, "table_invalid", /t: \/: .*rows/],
		["nothing wanted", { title: "t", cases: [{ ...one, want: {} }] }, "table_invalid", /t: \/cases\/0\/want/],
		["no moment", { title: "t", cases: [one] }, "table_invalid", /t: one: no moment/],
		[
			"a moment that there is not",
			{ title: "t", facts: { moment: "constructor" }, cases: [one] },
			"table_invalid",
			/no moment, one of session, call, resume, delivery/,
		],
		["one name twice", { title: "t", facts, cases: [one, one] }, "table_invalid", /t: one: .*another case/],
		[
			"data that is not good",
			{ title: "t", facts, cases: [{ ...one, data: { profile: "lax" } }] },
			"data_invalid",
			/t: one: .*\/profile/,
		],
	])("%s", async (_, document, code, message) => {
		await expect(readCases([{ name: "t", document }], data)).rejects.toMatchObject({
			code,
			message: expect.stringMatching(message),
		});
	});

	it("no table at all", async () => {
		await expect(readCases([], data)).rejects.toMatchObject({ code: "table_invalid" });
	});
});

// The examples of RFC 7396, appendix A, whose patch is an object.
describe("merge patch", () => {
	it.each([
		[{ a: "b" }, { a: "c" }, { a: "c" }],
		[{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
		[{ a: "b" }, { a: null }, {}],
		[{ a: "b", b: "c" }, { a: null }, { b: "c" }],
		[{ a: ["b"] }, { a: "c" }, { a: "c" }],
		[{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
		[{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
		[{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
		[{ e: null }, { a: 1 }, { e: null, a: 1 }],
		[[1, 2], { a: "b", c: null }, { a: "b" }],
		[{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
	])("%j, %j", (target, patch, result) => {
		expect(mergePatch(target, patch)).toEqual(result);
	});

	it("has no way to the prototype", () => {
		const merged = mergePatch({}, JSON.parse('{"__proto__": {"polluted": true}}'));
		expect(Object.keys(merged)).toEqual(["__proto__"]);
		expect(({} as { polluted?: true }).polluted).toBeUndefined();
	});
});
