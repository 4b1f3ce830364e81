import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { noOpa, policyFolder, shippedData, temporaryFolder, withOpa, withoutOpa } from "./folder.ts";
import { runOn } from "./support.ts";

const server = "https://mcp.example.com";
const narrow = { ...shippedData(), coverage: { [server]: [`${server}/tools/search`] } };

const tooOld = `package mcp.custom

refusal contains {"code": "custom:session_too_old", "outcome": "reinitialize", "session": "end"} if {
	input.now - input.session.opened_at > (8 * 60) * 60
}
`;

async function runTests(files: Readonly<Record<string, unknown>>, ...argv: string[]) {
	const result = await runOn([], "test", await policyFolder(files), "--json", ...argv);
	return { ...result, report: JSON.parse(result.stdout) };
}

describe("the tables, on the Wasm that would ship", () => {
	it("pass", async () => {
		withoutOpa();
		const { exitCode, stdout } = await runOn([], "test", await policyFolder());
		expect(stdout).toMatch(/^tests\/tools\.json\npass a token for the server calls fetch\n/);
		expect(stdout).toMatch(/\n6 passed, 0 failed\n$/);
		expect(exitCode).toBe(0);
	});

	it("fail, with facts, wanted, got and the rule that decided side by side", async () => {
		withoutOpa();
		const { exitCode, stdout } = await runOn([], "test", await policyFolder({ "mcp/data.json": narrow }));
		const lines = stdout.split("\n");
		const start = lines.indexOf("FAIL a token for the server calls fetch");
		expect(lines[start + 1]).toBe("  decided by: audience_not_covered");
		expect(lines[start + 2]).toMatch(/^ {2}facts +│ +wanted +│ got$/);
		expect(lines[start + 3]).toMatch(
			/^ {2}"moment": "call" +│ ≠ "outcome": "proceed" +│ "outcome": "reauthorize"$/,
		);
		expect(lines[start + 4]).toMatch(
			/^ {2}"now": 1796000000 +│ ≠ "code": "covered" +│ "code": "audience_not_covered"$/,
		);
		expect(stdout).toContain('"tool": "fetch"');
		expect(stdout).toMatch(/\n5 passed, 1 failed\n$/);
		expect(exitCode).toBe(1);
	});

	it("as JSON", async () => {
		withoutOpa();
		const { report, exitCode } = await runTests({ "mcp/data.json": narrow });
		expect(report).toMatchObject({ ok: false, passed: 5, failed: 1, left_out: [{ what: /refusals_test/ }] });
		expect(report.cases[0]).toMatchObject({
			name: "tools.json: a token for the server calls fetch",
			moment: "call",
			facts: { tool: "fetch" },
			want: { outcome: "proceed", code: "covered" },
			got: { outcome: "reauthorize", code: "audience_not_covered" },
			differs: ["outcome", "code"],
			ok: false,
			code: "audience_not_covered",
		});
		expect(exitCode).toBe(1);
	});

	it("in folders of their own, and only those with a text in their name", async () => {
		withoutOpa();
		const table = {
			title: "t",
			facts: { moment: "session", now: 1, request: { method: "GET", transport: "sse", session: "none" } },
			cases: [{ name: "nobody", facts: {}, want: { code: "token_missing" } }],
		};
		const { report } = await runTests({ "tests/deep/t.json": table }, "--filter", "deep/t.json: no");
		expect(report.cases.map(({ name }: { name: string }) => name)).toEqual(["deep/t.json: nobody"]);
	});
});

describe("could not", () => {
	const title = { title: "t", cases: [{ name: "a", facts: { moment: "call" }, want: { code: "covered" } }] };
	it.each<[string, Record<string, unknown>, string[], string, RegExp]>([
		["no table", { tests: null }, [], "table_invalid", /no case found/],
		["no case of that name", {}, ["--filter", "no such"], "table_invalid", /no case has "no such"/],
		["a table that is not JSON", { "tests/a.json": "{" }, [], "table_invalid", /tests\/a\.json is not JSON/],
		["a table that is none", { "tests/a.json": {} }, [], "table_invalid", /a\.json: \/: .*title/],
		["data that is not JSON", { "mcp/data.json": "{" }, [], "data_invalid", /mcp\/data\.json is not JSON/],
		["data that is not good", { "mcp/data.json": { resources: [] } }, [], "data_invalid", /\/resources/],
		[
			"a case whose data is not good",
			{ "tests/a.json": { ...title, data: { replay: "none" } } },
			[],
			"data_invalid",
			/a\.json: a: .*\/replay/,
		],
		["no data", { "mcp/data.json": null }, [], "file_unreadable", /mcp\/data\.json cannot be read/],
		[
			"Rego without OPA",
			{ "mcp/custom/own.rego": tooOld },
			[],
			"opa_missing",
			/OPA is needed to compile mcp\/custom\/own\.rego: put opa/,
		],
		["no place for the XML", {}, ["--junit", "/nowhere/x.xml"], "file_unwritable", /\/nowhere\/x\.xml/],
	])("%s", async (_, files, argv, code, message) => {
		withoutOpa();
		const { report, exitCode, stderr } = await runTests(files, ...argv);
		expect(report).toEqual({ error: { code, message: expect.stringMatching(message) } });
		expect(stderr).toMatch(message);
		expect(exitCode).toBe(2);
	});
});

describe("coverage", () => {
	it("says which codes no case has led to", async () => {
		withoutOpa();
		const { stdout, exitCode } = await runOn([], "test", await policyFolder(), "--coverage");
		expect(stdout).toMatch(/\n {2}5 codes reached, 32 never\n/);
		expect(stdout).toMatch(/\n {2}never, delivery: covered, token_missing, /);
		expect(exitCode).toBe(0);
	});

	it("has to be whole, where that is asked", async () => {
		withoutOpa();
		const { report, exitCode } = await runTests({}, "--require-coverage");
		expect(report).toMatchObject({ ok: false, failed: 0 });
		expect(report.coverage.missed).toContain("call scope_not_covered");
		expect(exitCode).toBe(1);
	});

	it.skipIf(noOpa)("needs OPA: knows the codes of own rules, and the lines of own Rego", async () => {
		await withOpa();
		const own = `${tooOld}\nrefusal contains {"code": "custom:never", "outcome": "refuse"} if input.now < 0\n`;
		const old = {
			title: "t",
			facts: {
				moment: "session",
				now: 1796000000,
				request: { method: "POST", transport: "streamable-http", session: "known" },
				session: {
					binding: { iss: "i", sub: "s", aud: [server] },
					transport: "streamable-http",
					opened_at: 1795000000,
				},
				presented: { iss: "i", sub: "s", aud: [server], exp: 1796000001 },
			},
			cases: [{ name: "old", facts: {}, want: { code: "custom:session_too_old", session: "end" } }],
		};
		const { report, exitCode } = await runTests(
			{ "mcp/custom/own.rego": own, "tests/old.json": old },
			"--coverage",
		);
		expect(report.coverage.reached).toContain("session custom:session_too_old");
		expect(report.coverage.missed).toContain("custom:never");
		expect(report.coverage.missed).not.toContain("custom:session_too_old");
		expect(report.rego.coverage).toEqual([
			{ file: "mcp/custom/own.rego", coverage: expect.any(Number), not_covered: [3, 7] },
		]);
		expect(exitCode).toBe(0);
	});
});

describe("Rego", () => {
	const tests = (body: string) => `package mcp.own_test\n\n${body}\n`;
	const facts = `facts(age) := {
	"moment": "session", "now": 1796000000,
	"request": {"method": "POST", "transport": "streamable-http", "session": "known"},
	"session": {"binding": claims, "transport": "sse", "opened_at": 1796000000 - age},
	"presented": object.union(claims, {"exp": 1796000001}),
}

claims := {"iss": "i", "sub": "s", "aud": data.mcp.resources, "scope": []}
`;

	it.skipIf(noOpa)("needs OPA: own rules decide in the tables, too", async () => {
		await withOpa();
		const refused = 'package mcp.custom\n\nrefusal contains {"code": "custom:all", "outcome": "refuse"}\n';
		const { report } = await runTests({ "mcp/custom/own.rego": refused });
		const codes = report.cases.map(({ code }: { code: string }) => code);
		// A stranger is a stranger first.
		expect(codes.filter((code: string) => code === "custom:all")).toHaveLength(5);
		expect(codes).toContain("principal_drift");
	});

	it.skipIf(noOpa)("needs OPA: own tests run with own rules and own data", async () => {
		await withOpa();
		const body = `${facts}
code(age) := answer if {
	answer := data.mcp.session.decision.code with input as facts(age)
}

test_young if code(1) == "covered"

test_old if code(9 * 3600) == "custom:session_too_old"

test_wrong if {
	print("got", code(1))
	code(1) == "custom:session_too_old"
}

todo_test_later if false`;
		const folder = await policyFolder({
			"mcp/custom/own.rego": tooOld,
			"mcp/custom/own_test.rego": tests(body),
			"mcp/data.json": { ...shippedData(), resources: ["mcp://own"], methods: {}, coverage: {} },
			"tests/tools.json": {
				title: "t",
				cases: [{ name: "a", facts: { moment: "call", now: 1 }, want: { code: "invalid_facts" } }],
			},
		});
		const { stdout, exitCode } = await runOn([], "test", folder);
		expect(stdout).toContain("mcp/custom/own_test.rego\n");
		expect(stdout).toContain("pass mcp.own_test.test_young\n");
		expect(stdout).toContain("pass mcp.own_test.test_old\n");
		expect(stdout).toContain("FAIL mcp.own_test.test_wrong\n  got covered\n");
		expect(stdout).toContain("todo mcp.own_test.todo_test_later\n");
		expect(stdout).toMatch(/\n4 passed, 1 failed\n$/);
		expect(exitCode).toBe(1);
	});

	it.skipIf(noOpa).each([
		["rules", "mcp/custom/own.rego", "package mcp.custom\n\nrefusal contains\n", 2],
		["tests", "mcp/custom/own_test.rego", "package mcp.own_test\n\ntest_x if\n", 1],
		["tests without a test", "mcp/custom/refusals_test.rego", "package mcp.own_test\n\nx := 1\n", 1],
	])("needs OPA: %s that cannot be read", async (_, path, text, code) => {
		await withOpa();
		expect((await runTests({ [path]: text })).exitCode).toBe(code);
	});

	it.skipIf(noOpa)("needs OPA: a rule that answers nonsense is a fault, with its reason", async () => {
		await withOpa();
		const own = 'package mcp.custom\n\nrefusal contains {"code": "covered", "outcome": "proceed"}\n';
		const folder = await policyFolder({ "mcp/custom/own.rego": own });
		const { stdout } = await runOn([], "test", folder);
		expect(stdout).toMatch(/decided by: policy_fault\n {2}because: the answer is not one of call/);
	});
});

it("writes JUnit's XML", async () => {
	withoutOpa();
	const file = join(temporaryFolder(), "policy.xml");
	const { exitCode } = await runOn(
		[],
		"test",
		await policyFolder({ "mcp/data.json": narrow }),
		"--junit",
		file,
	);
	const xml = readFileSync(file, "utf8");
	expect(xml).toMatch(/<testsuites name="mcp-resume-guard" tests="6" failures="1" errors="0" skipped="0"/);
	expect(xml).toMatch(
		/<testcase name="a token for search calls search" classname="tests\/tools\.json" time="[\d.]+"\/>/,
	);
	expect(xml).toMatch(
		/<failure message="outcome, code: decided by audience_not_covered" type="AssertionError">/,
	);
	expect(xml).toContain('≠ "outcome": "proceed"');
	expect(exitCode).toBe(1);
});
