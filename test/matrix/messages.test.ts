import { describe, expect, test } from "vitest";
import { startHost } from "./host.ts";
import { openRaw } from "./raw.ts";
import type { Sdk, TransportKind } from "./servers.ts";
import { mint } from "./tokens.ts";

const hosts: readonly { server: Sdk; transport: TransportKind }[] = [
	{ server: "v1", transport: "sdk" },
	{ server: "v1", transport: "own" },
	{ server: "v2", transport: "sdk" },
	{ server: "v2", transport: "own" },
];

/** What no MCP server answers, for one reason each. */
const odd: readonly (readonly [what: string, body: object])[] = [
	["an id that is no integer", { jsonrpc: "2.0", id: 1.5, method: "ping" }],
	["an id that is no safe integer", { jsonrpc: "2.0", id: 2 ** 53, method: "ping" }],
	["a member that JSON-RPC does not have", { jsonrpc: "2.0", id: 2, method: "ping", foo: 1 }],
	["the same in a notification", { jsonrpc: "2.0", method: "notifications/initialized", foo: 1 }],
	["_meta that is no object", { jsonrpc: "2.0", id: 3, method: "ping", params: { _meta: "x" } }],
	[
		"a progress token that is none",
		{ jsonrpc: "2.0", id: 4, method: "ping", params: { _meta: { progressToken: {} } } },
	],
	[
		"one of these in a batch",
		[
			{ jsonrpc: "2.0", id: 6, method: "ping" },
			{ jsonrpc: "2.0", id: 7, method: "ping", foo: 1 },
		],
	],
	["an answer with more than its result", { jsonrpc: "2.0", id: 8, result: {}, method: null }],
	["an error without a message", { jsonrpc: "2.0", id: 9, error: { code: -1 } }],
	["an error whose code is no integer", { jsonrpc: "2.0", id: 9, error: { code: 0.5, message: "x" } }],
];

describe.each(hosts)("a $server server on its '$transport' transport", ({ server, transport }) => {
	test.each(odd)("never waits for what it cannot read: %s", async (_, body) => {
		const host = await startHost({ server, transport });
		try {
			const session = await openRaw(host.port, await mint("wide"));
			const response = await session.post(body);

			expect([response.status, await response.ended]).toEqual([400, "clean"]);
		} finally {
			await host.close();
		}
	});
});
