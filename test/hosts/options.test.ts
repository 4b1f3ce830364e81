import Fastify from "fastify";
import { createTokenVerifier, type PolicyData } from "mcp-resume-guard";
import { resumeGuard } from "mcp-resume-guard/fastify";
import { createFetchGuard } from "mcp-resume-guard/fetch";
import { createNodeGuard } from "mcp-resume-guard/node";
import { describe, expect, test } from "vitest";

const data: PolicyData = { resources: ["https://mcp.example.com"] };
const tokens = { issuer: "https://as.example.com", jwks: { keys: [] } };

const hosts = {
	fastify: async (options: object) => void (await Fastify().register(resumeGuard, options as never)),
	node: async (options: object) => void (await createNodeGuard(options as never)),
	fetch: async (options: object) => void (await createFetchGuard(options as never)),
};

const misuse: readonly (readonly [what: string, options: object, message: RegExp])[] = [
	["a misspelt option", { wach: true }, /there is no option `wach`/],
	["a misspelt check of the host", { allowedHost: ["mcp.example.com"] }, /there is no option `allowedHost`/],
	["origins that are no list", { allowedOrigins: "https://app.example.com" }, /`allowedOrigins`/],
	["hosts that are no list", { allowedHosts: "mcp.example.com" }, /`allowedHosts`/],
	["an issuer that is no list", { authorizationServers: "https://as.example.com" }, /`authorizationServers`/],
	["a switch that is a word", { stateless: "yes" }, /`stateless`/],
	["a switch that is a number", { listCoveredTools: 1 }, /`listCoveredTools`/],
	["a path without its slash", { path: "mcp" }, /`path`/],
	["a `connect` that is no function", { connect: {} }, /`connect`: must be a function/],
	[
		"servers for sessions that there are none of",
		{ connect() {}, stateless: true },
		/`connect` is for sessions/,
	],
	["a store that is none", { sessions: {} }, /`sessions`: must have the methods open, find/],
	["an event log that is none", { events: {} }, /`events`: must have the methods open, drop/],
	[
		"a misspelt option of the verifier",
		{ tokens: { ...tokens, jwksUri: "x" } },
		/there is no option `jwksUri`/,
	],
	[
		"an algorithm for algorithms",
		{ tokens: { ...tokens, algorithm: ["EdDSA"] } },
		/there is no option `algorithm`/,
	],
	[
		"a misspelt deviation",
		{ tokens: { ...tokens, allow: { untypd: true } } },
		/there is no option `allow.untypd`/,
	],
	[
		"a claim that may not be absent",
		{ tokens: { ...tokens, allow: { absent: ["sub"] } } },
		/`allow.absent.0`/,
	],
	[
		"a misspelt option of DPoP",
		{ tokens: { ...tokens, dpop: { nonce: "x" } } },
		/there is no option `dpop.nonce`/,
	],
];

describe.each(Object.entries(hosts))("a guard for %s refuses", (_, create) => {
	test.each(misuse)("%s", async (_what, options, message) => {
		const failed = create({ data, tokens, ...options });
		await expect(failed).rejects.toThrow(TypeError);
		await expect(create({ data, tokens, ...options })).rejects.toThrow(message);
	});
});

test.each([
	["an option of HTTP+SSE that is missing", { sse: {} }, /`sse` needs `connect`/],
	["one that is misspelt", { connect() {}, sse: { message: "/m" } }, /there is no option `sse.message`/],
])("a guard for fastify refuses %s", async (_, options, message) => {
	await expect(hosts.fastify({ data, tokens, ...options })).rejects.toThrow(message);
});

describe.each(["", "/api"])("a Fastify host with the prefix %j", (prefix) => {
	async function warnings(options: object, route: boolean): Promise<string[]> {
		const lines: string[] = [];
		const app = Fastify({ logger: { level: "warn", stream: { write: (line) => lines.push(line) } } });
		await app.register(
			async (below) => {
				await below.register(resumeGuard, { data, tokens, ...options });
				if (route) below.post("/mcp", async () => "");
			},
			{ prefix },
		);
		await app.ready();
		await app.close();
		return lines.map((line) => JSON.parse(line).msg);
	}

	test("is told when POSTs have nowhere to go", async () => {
		expect(await warnings({}, false)).toEqual([
			`mcp-resume-guard: there is no route for POST ${prefix}/mcp, and no \`connect\``,
		]);
		expect(await warnings({}, true)).toEqual([]);
		expect(await warnings({ connect() {} }, false)).toEqual([]);
	});
});

describe("POSTs have one way to go", () => {
	const connected = { data, tokens, connect() {} };
	const answer = () => new Response();
	const request = new Request("http://127.0.0.1/other");

	test("of node", async () => {
		const [own, theirs] = [await createNodeGuard(connected), await createNodeGuard({ data, tokens })];
		expect(own.listener()).toBeTypeOf("function");
		expect(theirs.listener(() => {})).toBeTypeOf("function");
		expect(() => own.listener(() => {})).toThrow(/nothing for a handler/);
		expect(() => theirs.listener()).toThrow(/give a handler/);
	});

	test("of fetch", async () => {
		const [own, theirs] = [await createFetchGuard(connected), await createFetchGuard({ data, tokens })];
		expect(await own.handle(request)).toBeUndefined();
		expect(await theirs.handle(request, answer)).toBeUndefined();
		await expect(own.handle(request, answer)).rejects.toThrow(/nothing for a handler/);
		await expect(theirs.handle(request)).rejects.toThrow(/give a handler/);
	});
});

test("what may be given is taken", async () => {
	const { node, fetch, fastify } = hosts;
	for (const create of [node, fetch, fastify]) {
		await create({
			data,
			tokens,
			path: "/x",
			allowedOrigins: ["https://a.example"],
			allowedHosts: ["a"],
			stateless: true,
		});
	}
	await fastify({ data, tokens, prefix: "/x", connect() {}, sse: { path: "/s", messages: "/m" } });
	expect(
		createTokenVerifier({ ...tokens, allow: { azp: true, absent: ["jti"] }, dpop: {} }, data),
	).toBeTypeOf("function");
});
