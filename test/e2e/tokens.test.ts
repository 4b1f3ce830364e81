import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { describe, expect, test } from "vitest";
import { BOTH, FETCH, type Host, startHost } from "./support/host.ts";
import { type Asking, ask, callAndDrop, idsOf, initialize, openSession, toolCall } from "./support/raw.ts";

async function answer(host: Host, asking: Asking) {
	return (await ask(host, asking)).ended();
}

function metadataOf(host: Host): string {
	return `${host.origin}/.well-known/oauth-protected-resource/mcp`;
}

test("the metadata of the protected resource are where RFC 9728 has them, and at the root", async () => {
	const host = await startHost({ data: { tools: { fetch: { aud: [FETCH], scope: ["docs:read"] } } } });
	for (const url of [metadataOf(host), `${host.origin}/.well-known/oauth-protected-resource`]) {
		const response = await fetch(url);
		expect(response.status).toBe(200);
		expect(response.headers.get("content-type")).toMatch(/^application\/json/);
		expect(response.headers.get("access-control-allow-origin")).toBe("*");
		expect(await response.json()).toEqual({
			resource: host.mcp,
			authorization_servers: [host.authorizationServer.issuer],
			scopes_supported: ["docs:read"],
			bearer_methods_supported: ["header"],
		});
	}
});

describe("a request without a good token is answered 401 and where to get one", () => {
	test.each([
		["no token", async () => null, undefined],
		["another scheme", async () => "Basic YWxpY2U6c2VjcmV0", undefined],
		["a token that is none", async () => "Bearer nonsense", "invalid_token"],
		[
			"a token for somebody else",
			async (host: Host) => `Bearer ${await host.mint({ aud: "https://other.example.com" })}`,
			"invalid_token",
		],
		[
			"a token that has expired",
			async (host: Host) => `Bearer ${await host.mint({ exp: 1 })}`,
			"invalid_token",
		],
	])("%s", async (_, credentials, error) => {
		const host = await startHost();
		const session = await openSession(host, await host.mint());
		const authorization = await credentials(host);
		const requests: Asking[] = [
			{ body: initialize },
			{ session, body: toolCall(1, "fetch", { id: "a" }) },
			{ session, method: "GET" },
			{ session, method: "GET", cursor: "x.y.1" },
			{ session, method: "DELETE" },
		];
		for (const asking of requests) {
			const reply = await answer(host, { ...asking, headers: { authorization } });
			expect(reply.status).toBe(401);
			const challenge = reply.headers.get("www-authenticate") ?? "";
			expect(challenge).toMatch(/^Bearer /);
			expect(challenge).toContain(`resource_metadata="${metadataOf(host)}"`);
			expect(/ error="([^"]*)"/.exec(challenge)?.[1]).toBe(error);
		}
		expect(host.emitted.some(({ tool }) => tool !== undefined)).toBe(false);
	});
});

test("a token in the query is none", async () => {
	const host = await startHost();
	// Not one of those that may not be logged: Fastify logs the URLs that it is asked for.
	const { mint } = host.authorizationServer;
	const token = await mint({ sub: "alice", client_id: "desktop", aud: BOTH });
	const response = await fetch(`${host.mcp}?access_token=${token}`, {
		method: "POST",
		headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
		body: JSON.stringify(initialize),
	});
	expect(response.status).toBe(401);
});

test.each(["Bearer", "Bearer a b", "Bearer a, Bearer b", "Bearer ä"])(
	"a malformed header is answered 400: %s",
	async (authorization) => {
		const host = await startHost();
		const reply = await sendHeaders(host, [Buffer.from(authorization, "utf8").toString("latin1")]);
		expect(reply.statusCode).toBe(400);
		expect(reply.headers["www-authenticate"]).toMatch(/^Bearer error="invalid_request"/);
	},
);

test("two Authorization headers are answered 400, whichever of them is good", async () => {
	const host = await startHost();
	const good = `Bearer ${await host.mint()}`;
	for (const pair of [
		[good, "Bearer x"],
		["Bearer x", good],
		[good, good],
	]) {
		expect((await sendHeaders(host, pair)).statusCode).toBe(400);
	}
	expect((await sendHeaders(host, [good])).statusCode).toBe(200);
});

/** As fetch would not: each value on a line of its own. */
async function sendHeaders(host: Host, authorization: readonly string[]): Promise<IncomingMessage> {
	const headers = ["content-type", "application/json", "accept", "application/json, text/event-stream"];
	const { hostname, port, pathname: path } = new URL(host.mcp);
	const all = [
		...headers,
		...authorization.flatMap((value) => ["authorization", value]),
		"host",
		`${hostname}:${port}`,
	];
	const sent = request({ hostname, port, path, method: "POST", headers: all as never });
	sent.end(JSON.stringify(initialize));
	const [response] = (await once(sent, "response")) as [IncomingMessage];
	response.resume();
	const session = response.headers["mcp-session-id"];
	if (typeof session === "string") host.keepSecret(session);
	return response;
}

test("a stream is cut when its token expires, also when nothing comes; the next GET is told why", async () => {
	const host = await startHost({ data: { clock_skew: 0 } });
	const exp = Math.floor(Date.now() / 1000) + 2;
	const token = await host.mint({ exp });
	const session = await openSession(host, token);
	const cursor = await callAndDrop(host, { token, session, tool: "fetch", args: { id: "a", gate: "text" } });
	const own = await ask(host, { method: "GET", token, session });
	const resumed = await ask(host, { method: "GET", token, session, cursor });
	const post = await ask(host, { token, session, body: toolCall(2, "fetch", { id: "b", gate: "text" }) });
	for (const stream of [own, resumed, post]) {
		expect(stream.status).toBe(200);
		expect((await stream.ended()).end).toBe("cut");
		expect(Date.now() / 1000).toBeGreaterThanOrEqual(exp);
	}
	await host.open(session, "text");
	const late = await answer(host, { method: "GET", token, session, cursor });
	expect(late.status).toBe(401);
	expect(late.headers.get("www-authenticate")).toMatch(/error="invalid_token"/);
	expect(
		idsOf(await answer(host, { method: "GET", token: await host.mint(), session, cursor })),
	).toHaveLength(1);
});

test("while no keys are to be had nobody is let in, and clients are told to come again", async () => {
	const host = await startHost();
	const token = await host.mint();
	await host.authorizationServer.close();
	const reply = await answer(host, { token, body: initialize });
	expect(reply.status).toBe(503);
	expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
	expect(reply.headers.has("mcp-session-id")).toBe(false);
});
