import { Readable } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { run } from "../../src/cli/program.ts";
import { noOpa, policyFolder, shippedData, withOpa, withoutOpa } from "./folder.ts";
import { Collector, runOn } from "./support.ts";

interface Report {
	readonly ok: boolean;
	readonly errors: number;
	readonly warnings: number;
	readonly findings: readonly {
		readonly severity: string;
		readonly file: string;
		readonly pointer?: string;
		readonly line?: number;
		readonly rule: string;
		readonly message: string;
	}[];
	readonly left_out: readonly object[];
}

async function check(files: Readonly<Record<string, unknown>>, ...argv: string[]) {
	const { exitCode, stdout, stderr } = await runOn([], "check", await policyFolder(files), "--json", ...argv);
	return { exitCode, stderr, report: JSON.parse(stdout) as Report };
}

const server = "https://mcp.example.com";
const need = (...aud: string[]) => ({ aud, scope: [] });

const data = {
	resources: [server],
	tools: { search: need(`${server}/tools/search`) },
	coverage: { [server]: [`${server}/tools/*`] },
};

/** The data of the folder alone is looked at. */
async function findingsOf(changes: object): Promise<string[]> {
	withoutOpa();
	const only = { "mcp/custom": null, "tests/tools.json": null, "mcp/data.json": { ...data, ...changes } };
	const { report } = await check(only);
	return report.findings
		.filter(({ rule }) => rule !== "no_table")
		.map(({ severity, rule, pointer }) => `${severity} ${rule} ${pointer}`);
}

it("good data has no findings", async () => {
	expect(await findingsOf({})).toEqual([]);
});

it("data with a key twice, which is good otherwise", async () => {
	withoutOpa();
	const text = JSON.stringify(shippedData()).replace("{", '{"profile":"strict",');
	const { report, exitCode } = await check({ "mcp/data.json": text });
	expect(report.findings).toMatchObject([
		{ severity: "error", file: "mcp/data.json", rule: "key_repeated", pointer: "/profile" },
	]);
	expect(exitCode).toBe(1);
});

describe("data by its schema: all that is wrong, and where", () => {
	it.each<[string, object, string[]]>([
		[
			"values",
			{ profile: "lax", clock_skew: -1, anonymous: "no" },
			["data_schema /profile", "data_schema /clock_skew", "data_schema /anonymous"],
		],
		["a member that there is not", { tool: {} }, ["data_schema /tool"]],
		["a member that has to be there", { resources: undefined }, ["data_schema /resources"]],
		[
			"below names that a pointer escapes",
			{ tools: { "a/b~c": { aud: [1] } } },
			["data_schema /tools/a~1b~0c/scope", "data_schema /tools/a~1b~0c/aud/0"],
		],
		[
			"patterns where none may be",
			{ resources: ["https://*.example.com"], coverage: { "https://*": ["https://a.example/*/b"] } },
			[
				"data_schema /resources/0",
				"data_schema /coverage/https:~1~1*",
				"data_schema /coverage/https:~1~1*/0",
			],
		],
		[
			"a scope that is two",
			{ tools: { a: { aud: [], scope: ["read write", "ok", 'no"'] } } },
			["scope_with_space /tools/a/scope/0", "data_schema /tools/a/scope/2"],
		],
		[
			"sets of aliases that overlap",
			{
				aliases: [
					["mcp://a", "mcp://b"],
					["mcp://c", "mcp://b"],
					["mcp://a", "mcp://d"],
				],
			},
			["aliases_overlap /aliases/1/1", "aliases_overlap /aliases/2/0"],
		],
		["a lone surrogate", { resources: ["https://a.example/\ud800"] }, ["data_invalid undefined"]],
		[
			"an identity claim that is one already",
			{ identity_claims: ["org", "sub"] },
			["data_schema /identity_claims/1"],
		],
	])("%s", async (_, changes, found) => {
		const wanted = found.map((one) => `error ${one}`).sort();
		expect((await findingsOf(changes)).sort()).toEqual(wanted);
	});
});

describe("indicators that are probably not meant so", () => {
	const resource = (indicator: string) => ({ resources: [server, indicator] });
	it.each<[string, object, string[]]>([
		["a scheme in upper case", resource("HTTPS://a.example"), ["warning indicator_upper_case /resources/1"]],
		["a host in upper case", resource("https://A.example/x"), ["warning indicator_upper_case /resources/1"]],
		["a path in upper case is a path", resource("https://a.example/X"), []],
		["a trailing slash", resource("https://a.example/x/"), ["warning indicator_trailing_slash /resources/1"]],
		["a slash alone", resource("https://a.example/"), ["warning indicator_trailing_slash /resources/1"]],
		["a fragment", resource("https://a.example/x#y"), ["error indicator_fragment /resources/1"]],
		["an empty fragment", resource("https://a.example/x#"), ["error indicator_fragment /resources/1"]],
		["a query", resource("https://a.example/x?y=z"), ["warning indicator_query /resources/1"]],
		["the port of https", resource("https://a.example:443"), ["warning indicator_default_port /resources/1"]],
		["the port of http", resource("http://a.example:80/x"), ["warning indicator_default_port /resources/1"]],
		[
			"a port that is none",
			resource("https://a.example:/x"),
			["warning indicator_default_port /resources/1"],
		],
		["another port", resource("https://a.example:8443"), []],
		["an address of IPv6", resource("https://[::1]:8443/x"), []],
		["a user", resource("https://me@a.example/x"), ["warning indicator_userinfo /resources/1"]],
		["dot segments", resource("https://a.example/x/../y"), ["warning indicator_not_canonical /resources/1"]],
		[
			"a host that is not ASCII",
			resource("https://bücher.example"),
			["warning indicator_not_canonical /resources/1"],
		],
		["no URI", resource("my-api"), ["warning indicator_not_uri /resources/1"]],
		["another scheme", resource("mcp://srv/v2"), []],
		["a URN", resource("urn:example:mcp"), []],
		[
			"two things at once",
			resource("https://A.example:443/"),
			[
				"warning indicator_upper_case /resources/1",
				"warning indicator_default_port /resources/1",
				"warning indicator_trailing_slash /resources/1",
			],
		],
		[
			"two that differ only by a slash",
			{ tools: { search: need(`${server}/tools/search`), fetch: need(`${server}/tools/search/`) } },
			[
				"warning indicator_trailing_slash /tools/fetch/aud/0",
				"warning indicators_differ_by_slash /tools/fetch/aud/0",
				// Which is why coverage does not help it.
				"warning tool_not_covered /tools/fetch/aud/0",
			],
		],
		[
			"in every place that has some",
			{
				tools: { search: need(`${server}/tools/search`), a: need("A:a") },
				methods: { b: need("B:b") },
				session_need: need("C:c"),
				coverage: { [server]: [`${server}/tools/*`, "A:a", "B:b", "C:c"], "D:d": ["A:a"] },
				aliases: [["C:c", "E:e"]],
			},
			[
				"/tools/a/aud/0",
				"/methods/b/aud/0",
				"/session_need/aud/0",
				`/coverage/${server.replaceAll("/", "~1")}/1`,
				`/coverage/${server.replaceAll("/", "~1")}/2`,
				`/coverage/${server.replaceAll("/", "~1")}/3`,
				"/coverage/D:d",
				"/coverage/D:d/0",
				"/aliases/0/0",
				"/aliases/0/1",
			].map((at) => `warning indicator_upper_case ${at}`),
		],
	])("%s", async (_, changes, found) => {
		expect(await findingsOf(changes)).toEqual(found);
	});
});

describe("maps that are probably not meant so", () => {
	const at = `/coverage/${server.replaceAll("/", "~1")}`;
	it.each<[string, object, string[]]>([
		[
			"an entry that covers nothing",
			{ coverage: { [server]: [`${server}/tools/*`, `${server}/tool/*`, "https://other.example"] } },
			[`warning coverage_of_nothing ${at}/1`, `warning coverage_of_nothing ${at}/2`],
		],
		[
			"an audience that covers nothing",
			{ coverage: { [server]: [`${server}/tools/*`], "mcp://srv": [] } },
			["warning coverage_of_nothing /coverage/mcp:~1~1srv"],
		],
		[
			"an audience that covers itself",
			{ coverage: { [server]: [`${server}/tools/*`, server] } },
			[`warning coverage_of_nothing ${at}/1`],
		],
		[
			"an entry that covers by another name",
			{
				tools: { search: need("mcp://srv/v1") },
				aliases: [["mcp://srv/v1", "mcp://srv/v2"]],
				coverage: { [server]: ["mcp://srv/v2"] },
			},
			[],
		],
		[
			"a tool that nobody covers",
			{ tools: { search: need(`${server}/tools/search`), fetch: need(`${server}/fetch`) } },
			["warning tool_not_covered /tools/fetch/aud/0"],
		],
		[
			"a method and a session need that nobody covers",
			{ methods: { a: need("mcp://a") }, session_need: need("mcp://b") },
			["warning method_not_covered /methods/a/aud/0", "warning session_not_covered /session_need/aud/0"],
		],
		[
			"with a token for each tool, nobody has to",
			{ profile: "per-tool", coverage: {}, tools: { fetch: need(`${server}/fetch`) } },
			[],
		],
		[
			"a tool that needs less than the rest",
			{
				tools: {
					search: need(`${server}/tools/search`),
					more: { aud: [server], scope: ["admin", "read"] },
					"*": { aud: [server], scope: ["admin"] },
				},
			},
			["warning tool_shadows_rest /tools/search"],
		],
		[
			"a method that needs less than the rest",
			{ methods: { "resources/read": need(), "*": need(server) } },
			["warning method_shadows_rest /methods/resources~1read"],
		],
		[
			"a name that looks like a pattern",
			{ tools: { search: need(`${server}/tools/search`), "fetch_*": need(server) } },
			["warning tool_pattern /tools/fetch_*"],
		],
		[
			"a status of no code",
			{ status: { sesion_unknown: 400, session_unknown: 400, "custom:own": 400 } },
			["warning status_of_no_code /status/sesion_unknown"],
		],
		["aliases of one name", { aliases: [["mcp://a", "mcp://a"]] }, ["warning alias_of_itself /aliases/0"]],
	])("%s", async (_, changes, found) => {
		expect(await findingsOf(changes)).toEqual(found);
	});
});

describe("tables", () => {
	const one = { name: "one", facts: { moment: "call", now: 1 }, want: { code: "covered" } };
	it.each<[string, unknown, string[]]>([
		["nothing wrong", { title: "t", cases: [one] }, []],
		[
			"all that breaks the schema",
			{ titel: "t", cases: [{ name: 1, facts: {} }] },
			["/title", "/titel", "/cases/0/want", "/cases/0/name"].map((at) => `error table_schema ${at}`),
		],
		["one name twice", { title: "t", cases: [one, one] }, ["error case_repeated /cases/1/name"]],
		[
			"no moment, and no time",
			{ title: "t", cases: [{ ...one, facts: {} }] },
			["error case_without_moment /cases/0/facts", "warning case_without_now /cases/0/facts"],
		],
		[
			"what no decision has",
			{ title: "t", cases: [{ ...one, want: { outcom: "refuse", code: "covred" } }] },
			["error want_of_nothing /cases/0/want/outcom", "error want_of_nothing /cases/0/want/code"],
		],
		["a code of one's own", { title: "t", cases: [{ ...one, want: { code: "custom:own" } }] }, []],
		[
			"data that is not good",
			{
				title: "t",
				data: { clock_skew: 1000 },
				cases: [one, { ...one, name: "two", data: { clock_skew: 1 } }],
			},
			["error case_data /cases/0"],
		],
		["no JSON", "{", ["error not_json undefined"]],
		[
			"a key twice",
			`{"title": "t", "cases": [{"name": "one", "facts": {"moment": "call", "now": 1, "n\\u006fw": 2}, "want": {"code": "covered"}}]}`,
			["error key_repeated /cases/0/facts/now"],
		],
		[
			"facts that there are not, wherever they are",
			{
				title: "t",
				data: { identity_claims: ["org_id"] },
				facts: { ...one.facts, presentd: {}, request: { metod: "GET" }, session: { bound: {} } },
				cases: [
					{
						...one,
						facts: {
							presentd: null,
							presented: { iss: "i", azp: "a", scp: "s", iat: 1, org_id: "o", scopes: "s" },
							session: { binding: { org_id: "o", audience: "a" } },
							pending: [{ id: "1", aud: [], scope: [], tol: "x" }],
							open: [{ id: "1", aud: [], scope: [] }],
							cursor: { last_event_id: "1", pos: "x" },
						},
					},
					{ ...one, name: "two", facts: { pending: { count: 0, needs: [{ idx: 1 }], lst: "1" } } },
				],
			},
			[
				"/facts/presentd",
				"/facts/request/metod",
				"/facts/session/bound",
				"/cases/0/facts/presented/scopes",
				"/cases/0/facts/session/binding/audience",
				"/cases/0/facts/pending/0/tol",
				"/cases/0/facts/open/0/id",
				"/cases/0/facts/cursor/pos",
				"/cases/1/facts/pending/needs/0/idx",
				"/cases/1/facts/pending/lst",
			].map((at) => `warning fact_unknown ${at}`),
		],
	])("%s", async (_, table, found) => {
		withoutOpa();
		const { report } = await check({ "tests/tools.json": null, "tests/deep/t.json": table });
		expect(
			report.findings.map(({ severity, file, rule, pointer }) => {
				expect(file).toBe("tests/deep/t.json");
				return `${severity} ${rule} ${pointer}`;
			}),
		).toEqual(found);
	});

	it("none at all is a warning", async () => {
		withoutOpa();
		const { report, exitCode } = await check({ tests: null });
		expect(report.findings).toMatchObject([{ severity: "warning", rule: "no_table" }]);
		expect(exitCode).toBe(0);
	});
});

describe("exit codes", () => {
	const warned = { "mcp/data.json": { ...shippedData(), status: { nothing: 400 } } };

	it("0 with warnings, 1 with --strict", async () => {
		withoutOpa();
		expect(await check(warned)).toMatchObject({ exitCode: 0, report: { ok: true, warnings: 1 } });
		expect(await check(warned, "--strict")).toMatchObject({ exitCode: 1, report: { ok: false, errors: 0 } });
	});

	it("1 with errors", async () => {
		withoutOpa();
		expect(await check({ "mcp/data.json": "[" })).toMatchObject({ exitCode: 1, report: { errors: 1 } });
	});

	it.each([
		["no folder", "/nowhere/to/be/found"],
		["a folder without data", "docs"],
	])("2 with %s", async (_, dir) => {
		const { exitCode, stdout, stderr } = await runOn([], "check", dir, "--json");
		expect(stderr).toMatch(/cannot be read/);
		expect(JSON.parse(stdout)).toMatchObject({ error: { code: "file_unreadable" } });
		expect(exitCode).toBe(2);
	});

	it("2 with an $OPA that is none", async () => {
		withoutOpa();
		process.env.OPA = process.execPath;
		expect(await runOn([], "check", await policyFolder())).toMatchObject({
			exitCode: 2,
			stderr: expect.stringMatching(/\$OPA is .*, which is not OPA 1\.x/),
		});
	});
});

it("says what it found in sentences, one place each", async () => {
	withoutOpa();
	const dir = await policyFolder({ "mcp/data.json": { ...shippedData(), profile: "\u001b[2Jlax" } });
	const { stdout } = await runOn([], "check", dir);
	expect(stdout).toBe(
		"error mcp/data.json /profile data_schema\n  must be one of strict, covering, per-tool\n1 error, 0 warnings\n",
	);
});

it("lets no name of a folder write to the terminal", async () => {
	withoutOpa();
	const dir = await policyFolder({ "mcp/data.json": { ...shippedData(), "\u001b[2J": 1 } });
	const { stdout } = await runOn([], "check", dir);
	expect(stdout).toContain(String.raw`/\u001b[2J`);
});

describe("colours", () => {
	async function onTerminal(noColor: string) {
		withoutOpa();
		vi.stubEnv("NO_COLOR", noColor);
		const [stdout, stderr] = [new Terminal(), new Collector()];
		const dir = await policyFolder({ "mcp/data.json": "{" });
		await run(["check", dir], { stdin: Readable.from([]), stdout, stderr });
		return stdout.text;
	}

	it("on a terminal", async () => {
		expect(await onTerminal("")).toContain("\u001b[31merror\u001b[39m mcp/data.json");
	});

	it("not where its user wants none", async () => {
		expect(await onTerminal("1")).toMatch(/^error mcp\/data\.json/);
	});

	it("not elsewhere, whatever the environment wants", async () => {
		withoutOpa();
		vi.stubEnv("FORCE_COLOR", "1");
		const { stdout } = await runOn([], "check", await policyFolder({ "mcp/data.json": "{" }));
		expect(stdout).toMatch(/^error mcp\/data\.json/);
	});
});

class Terminal extends Collector {
	readonly isTTY = true;

	hasColors(): boolean {
		return true;
	}
}

describe("Rego", () => {
	const rule = (body: string) => `package mcp.custom\n\n${body}\n`;

	it("is left out by name without OPA", async () => {
		withoutOpa();
		const { stderr, report } = await check({});
		expect(stderr).toMatch(/^mcp-resume-guard: left out: opa fmt, opa check: no OPA was found; put opa/);
		expect(report.left_out).toHaveLength(1);
	});

	it("of the folder's own, without OPA: it could not be found out", async () => {
		withoutOpa();
		const own = { "mcp/custom/own.rego": rule("x := 1") };
		expect(await check(own)).toMatchObject({ exitCode: 2, report: { ok: false, errors: 0 } });
		expect(await check({ ...own, "mcp/data.json": "{" })).toMatchObject({ exitCode: 1 });
		// The template's has no rule in it.
		expect(await check({})).toMatchObject({ exitCode: 0, report: { ok: true } });
	});

	it("is not missed where there is none", async () => {
		withoutOpa();
		expect(await check({ "mcp/custom": null })).toMatchObject({ stderr: "", report: { left_out: [] } });
	});

	it.skipIf(noOpa).each<[string, string, string, string[]]>([
		[
			"as `opa fmt` does not have it",
			"mcp/custom/own.rego",
			'package mcp.custom\nrefusal contains {"code":"custom:x"} if {input.now<0}\n',
			["mcp/custom/own.rego:undefined rego_format"],
		],
		[
			"that cannot be read",
			"mcp/custom/own.rego",
			rule("refusal contains"),
			["mcp/custom/own.rego:4 rego_parse_error"],
		],
		[
			"of facts that there are not",
			"mcp/custom/own.rego",
			rule('refusal contains {"code": "custom:x"} if input.sesion'),
			["mcp/custom/own.rego:3 rego_type_error"],
		],
		[
			"of claims that the facts do not have",
			"mcp/custom/own.rego",
			rule('refusal contains {"code": "custom:x"} if input.presented.org_id == "x"'),
			["mcp/custom/own.rego:3 rego_type_error"],
		],
		[
			"with a builtin that the Wasm lacks",
			"deep/own.rego",
			"package mcp.custom\n\nnow := time.now_ns()\n",
			["deep/own.rego:3 rego_type_error"],
		],
		[
			"not strict",
			"mcp/custom/own.rego",
			"package mcp.custom\n\nimport data.mcp.lib.need\n",
			["mcp/custom/own.rego:3 rego_compile_error"],
		],
		[
			"in tests, too",
			"mcp/custom/own_test.rego",
			"package mcp.own_test\n\ntest_x if data.mcp.custom.nothing(1)\n",
			["mcp/custom/own_test.rego:3 rego_type_error"],
		],
	])("needs OPA: %s", async (_, path, text, found) => {
		await withOpa();
		const { report, exitCode } = await check({ [path]: text });
		const names = new Set(report.findings.map(({ file, line, rule: name }) => `${file}:${line} ${name}`));
		expect([...names]).toEqual(found);
		expect(exitCode).toBe(1);
	});

	it.skipIf(noOpa)("needs OPA: of claims that the facts have, as data names them", async () => {
		await withOpa();
		const { report } = await check({
			"mcp/data.json": { ...shippedData(), identity_claims: ["org_id", "act"] },
			"mcp/custom/own.rego": rule(
				[
					'refusal contains {"code": "custom:x"} if input.presented.org_id == "x"',
					'refusal contains {"code": "custom:y"} if input.session.binding.act.sub == "x"',
				].join("\n\n"),
			),
		});
		expect(report.findings).toEqual([]);
	});
});
