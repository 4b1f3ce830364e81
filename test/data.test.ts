import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { describe as describeError, readData } from "../src/data.ts";
import { createResumeGuard, type PolicyData, ResumeGuardError } from "../src/index.ts";
import { inTemporaryFolder } from "./temporary.ts";

const MCP = "https://mcp.example.com";
const need = { aud: [MCP], scope: [] };

function guarded(data: unknown) {
	return createResumeGuard({ data: data as PolicyData });
}

test("what data leaves out has its default", async () => {
	const { data } = await guarded({ resources: [MCP] });
	expect(data).toEqual({
		profile: "covering",
		replay: "atomic",
		foreign_principal: "end",
		anonymous: false,
		clock_skew: 30,
		identity_claims: [],
		resources: [MCP],
		tools: {},
		methods: {},
		session_need: { aud: [], scope: [] },
		coverage: {},
		aliases: [],
		status: {},
	});
});

test("the data file beside the policies is complete and good", async () => {
	const { data } = await createResumeGuard({ data: "policies/mcp/data.json" });
	expect(data).toEqual(JSON.parse(readFileSync("policies/mcp/data.json", "utf8")));
});

function inItself(list: string[]): string[] {
	return Object.assign(list, { list });
}

test("data of a file is read as the same data given", async () => {
	const path = "policies/mcp/data.json";
	const given = JSON.parse(readFileSync(path, "utf8")) as PolicyData;
	expect(await readData(path)).toEqual(given);
	expect(await readData(given)).toEqual(given);
});

// What is other in the data, and the place that the error names.
const bad: Record<string, readonly [data: object, pointer: string]> = {
	"no resources": [{ resources: undefined }, "/"],
	"resources that are empty": [{ resources: [] }, "/resources"],
	"resources that are text": [{ resources: MCP }, "/resources"],
	"a resource that is empty": [{ resources: [""] }, "/resources/0"],
	"a resource that is a wildcard": [{ resources: [`${MCP}/*`] }, "/resources/0"],
	"a resource with a space": [{ resources: [`${MCP}/a b`] }, "/resources/0"],
	"an unknown member": [{ profil: "strict" }, "/: must NOT have additional properties (profil)"],
	"an unknown member with a hostile name": [
		JSON.parse('{"__proto__": 1}') as object,
		"/: must NOT have additional properties (__proto__)",
	],
	"a profile that there is not": [
		{ profile: "loose" },
		"/profile: must be equal to one of the allowed values (strict,covering,per-tool)",
	],
	"a replay that there is not": [{ replay: "best-effort" }, "/replay"],
	"a foreign_principal that there is not": [{ foreign_principal: "ignore" }, "/foreign_principal"],
	"anonymous that is text": [{ anonymous: "false" }, "/anonymous"],
	"anonymous that is null": [{ anonymous: null }, "/anonymous"],
	"a skew below 0": [{ clock_skew: -1 }, "/clock_skew"],
	"a skew of an hour": [{ clock_skew: 3600 }, "/clock_skew"],
	"a skew that is text": [{ clock_skew: "30" }, "/clock_skew"],
	"identity claims that are text": [{ identity_claims: "org_id" }, "/identity_claims"],
	...Object.fromEntries(
		[
			"anonymous",
			"iss",
			"sub",
			"client_id",
			"azp",
			"aud",
			"scope",
			"scp",
			"cnf",
			"exp",
			"nbf",
			"iat",
			"jti",
		].map((claim) => [
			`an identity claim of its own meaning: ${claim}`,
			[{ identity_claims: ["org_id", claim] }, "/identity_claims/1"] as const,
		]),
	),
	"an identity claim of no name": [{ identity_claims: [""] }, "/identity_claims/0"],
	"tools that are a list": [{ tools: [] }, "/tools"],
	"a tool without aud": [{ tools: { search: { scope: [] } } }, "/tools/search"],
	"a tool without scope": [{ tools: { search: { aud: [] } } }, "/tools/search"],
	"a tool whose aud is text": [{ tools: { search: { aud: MCP, scope: [] } } }, "/tools/search/aud"],
	"a tool with a wildcard in its aud": [
		{ tools: { search: { aud: [`${MCP}/*`], scope: [] } } },
		"/tools/search/aud/0",
	],
	"a tool with two scopes in one": [
		{ tools: { search: { aud: [], scope: ["a b"] } } },
		"/tools/search/scope/0",
	],
	"a tool with a quote in a scope": [
		{ tools: { search: { aud: [], scope: ['a"b'] } } },
		"/tools/search/scope/0",
	],
	"a tool with a need more": [
		{ tools: { search: { ...need, role: "x" } } },
		"/tools/search: must NOT have additional properties (role)",
	],
	"a tool whose name has a slash": [{ tools: { "a/b": { aud: [] } } }, "/tools/a~1b"],
	"a method that is null": [{ methods: { "resources/read": null } }, "/methods/resources~1read"],
	"a session need without scope": [{ session_need: { aud: [] } }, "/session_need"],
	"coverage that is a list": [{ coverage: [] }, "/coverage"],
	"coverage of text": [{ coverage: { [MCP]: MCP } }, "/coverage/https:~1~1mcp.example.com"],
	"coverage under a wildcard": [{ coverage: { [`${MCP}/*`]: [] } }, "/coverage"],
	...Object.fromEntries(
		[
			"",
			"*",
			"/*",
			"//*",
			"a*",
			"https://*",
			"https://*/x",
			"https:///*",
			"https:/*",
			"*://mcp.example.com/*",
			"https://*.example.com/*",
			"https://mcp.example.com*",
			"https://mcp.example.com/*/x",
			"https://mcp.example.com/*/*",
			"https://mcp.example.com/**",
			"https://mcp.example.com/a*",
			"https://mcp.example.com/a/*b",
			"https://mcp.example.com//*",
			"https://mcp.example.com/a//*",
			"https://mcp.example.com/./*",
			"https://mcp.example.com/../*",
			"https://mcp.example.com/a/../*",
			"https://mcp.example.com/%2e%2e/*",
			"https://mcp.example.com/.%2E/*",
			"https://mcp.example.com/a%2fb/*",
			"https://mcp.example.com/a%5Cb/*",
			"https://mcp.example.com/a\\b/*",
			"https://mcp.example.com?x/*",
			"https://mcp.example.com/?x=/*",
			"https://mcp.example.com/#/*",
			"https://mcp.example.com/a b/*",
			"https://mcp.example.com/%/*",
			"https://mcp.example.com/é/*",
			"1https://mcp.example.com/*",
			"mcp.example.com/*",
			"://mcp.example.com/*",
		].map((entry) => [
			`a coverage entry: ${entry || "nothing"}`,
			[{ coverage: { [MCP]: [MCP, entry] } }, "/coverage/https:~1~1mcp.example.com/1"] as const,
		]),
	),
	"aliases that are no sets": [{ aliases: ["a", "b"] }, "/aliases/0"],
	"an alias set of one": [{ aliases: [["a"]] }, "/aliases/0"],
	"an alias with a wildcard": [{ aliases: [["a", "a/*"]] }, "/aliases/0/1"],
	"alias sets that overlap": [
		{
			aliases: [
				["a", "b"],
				["c", "b"],
			],
		},
		"/aliases: b is in two sets",
	],
	"a status of success": [{ status: { covered: 200 } }, "/status/covered"],
	"a status of a redirect": [{ status: { token_missing: 302 } }, "/status/token_missing"],
	"a status beyond 599": [{ status: { token_missing: 600 } }, "/status/token_missing"],
	"a status that is text": [{ status: { token_missing: "401" } }, "/status/token_missing"],
	"a lone surrogate": [{ resources: [MCP, "mcp://\ud800"] }, "/resources/1: a lone surrogate"],
	"a lone surrogate in the name of a tool": [{ tools: { "\udc00": need } }, "/tools: a lone surrogate"],
	"tools that are a Map": [{ tools: new Map([["search", need]]) }, "/tools: not JSON"],
	"a status that is a Date": [{ status: new Date() }, "/status: not JSON"],
	"a list with a member beside its elements": [
		{ resources: Object.assign([MCP], { more: 1 }) },
		"/resources: not JSON",
	],
	"a list that is in itself": [{ resources: inItself([MCP]) }, "/resources: not JSON"],
};

describe("data that breaks the schema is refused, with the place", () => {
	it.each(Object.entries(bad))("%s", async (_, [data, pointer]) => {
		const failure: unknown = await guarded({ resources: [MCP], ...data }).catch((error: unknown) => error);
		expect(failure).toBeInstanceOf(ResumeGuardError);
		const { code, message } = failure as ResumeGuardError;
		expect(code).toBe("data_invalid");
		const place = `policy data: ${pointer}${pointer.includes(": ") ? "" : ": "}`;
		expect(message.startsWith(place), message).toBe(true);
	});

	it("in these words, and no others", async () => {
		await expect(guarded({ resources: [] })).rejects.toThrow(
			/^policy data: \/resources: must NOT have fewer than 1 items$/,
		);
		await expect(guarded({ resources: [MCP], replay: "all" })).rejects.toThrow(
			/^policy data: \/replay: must be equal to one of the allowed values \(atomic,prefix\)$/,
		);
		expect(describeError(undefined)).toBe("invalid");
	});

	it.each([
		["a list", []],
		["a Map", new Map([["resources", [MCP]]])],
	])("%s", async (_, data) => {
		await expect(guarded(data)).rejects.toMatchObject({ name: "ResumeGuardError", code: "data_invalid" });
	});
});

describe("data that is good", () => {
	it.each<[string, object]>([
		["the whole authority", { coverage: { [MCP]: [`${MCP}/*`] } }],
		["a path", { coverage: { [MCP]: [`${MCP}/a/b.c/~d/*`] } }],
		[
			"a port, and an address",
			{ coverage: { [MCP]: ["https://mcp.example.com:8443/*", "https://[::1]/*"] } },
		],
		["a scheme of one's own", { coverage: { "mcp://srv": ["mcp://srv/tools/*"] } }],
		["an exact entry that is no URI", { coverage: { [MCP]: ["api", "urn:example:files"] } }],
		["coverage of nothing", { coverage: { [MCP]: [] } }],
		[
			"one tool of a hostile name",
			JSON.parse('{"tools": {"__proto__": {"aud": [], "scope": []}}}') as object,
		],
		["a name twice in one alias set", { aliases: [["a", "b", "a"]] }],
		["an identity claim of a namespace", { identity_claims: ["https://example.com/org", "act"] }],
		["a status for a code of one's own", { status: { "custom:closed": 503 } }],
		[
			"a scope of every character",
			{ session_need: { aud: [], scope: ["!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~"] } },
		],
	])("%s", async (_, data) => {
		await expect(guarded({ resources: [MCP], ...data })).resolves.toMatchObject({ data });
	});
});

describe("a file of data", () => {
	it.each<[string, string, string]>([
		["that is no JSON", "{", "data_invalid"],
		["that is empty", "", "data_invalid"],
		["that is null", "null", "data_invalid"],
		["that is text", '"strict"', "data_invalid"],
		["that breaks the schema", '{"resources": []}', "data_invalid"],
	])("%s", async (_, content, code) => {
		await inTemporaryFolder([{ path: "data.json", content }], async (folder) => {
			const failed = createResumeGuard({ data: `${folder}/data.json` });
			await expect(failed).rejects.toMatchObject({ name: "ResumeGuardError", code });
		});
	});

	it("is named where it breaks the schema", async () => {
		await inTemporaryFolder([{ path: "data.json", content: '{"resources": []}' }], async (folder) => {
			const path = `${folder}/data.json`;
			await expect(createResumeGuard({ data: path })).rejects.toThrow(`policy data ${path}: /resources: `);
		});
	});

	it("that is not there", async () => {
		await expect(createResumeGuard({ data: "no/such.json" })).rejects.toMatchObject({
			code: "file_unreadable",
			message: "the policy data no/such.json cannot be read",
		});
	});
});
