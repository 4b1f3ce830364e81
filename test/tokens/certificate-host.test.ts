import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, createServer, request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createNodeGuard } from "../../src/hosts/node.ts";
import { boundToCertificate, createAuthority, createPeer, type Identity } from "./certificates.ts";
import { echo, type Host, INITIALIZE, MCP_HEADERS, startHost } from "./host.ts";
import { createSigner, DATA, ISSUER, type Signer, sign } from "./support.ts";

let issuer: Signer;
let authority: Identity;
let alice: Identity;
let bob: Identity;
let stranger: Identity;
let server: Identity;
let host: Host;

beforeAll(async () => {
	[issuer, authority] = await Promise.all([createSigner("ES256", "issuer"), createAuthority()]);
	[server, alice, bob, stranger] = await Promise.all([
		createPeer("server", authority),
		createPeer("alice", authority),
		createPeer("bob", authority),
		createPeer("stranger"),
	]);
	host = await startHost(tokens(), tls());
});

afterAll(() => host.close());

function tokens() {
	return { issuer: ISSUER, jwks: { keys: [issuer.jwk] } };
}

/** Asks for a client certificate, and serves those without one that it trusts too. */
function tls() {
	return { ...server, ca: authority.cert, requestCert: true, rejectUnauthorized: false };
}

interface Sending {
	readonly origin?: string;
	readonly method?: string;
	readonly body?: object;
	readonly headers?: Record<string, string>;
	readonly agent?: Agent;
}

interface Received {
	readonly status: number | undefined;
	readonly headers: IncomingMessage["headers"];
	readonly body: string;
	readonly isResumed: boolean;
}

/** A request over TLS, with the identity's certificate if there is one. */
async function send(
	identity: Identity | undefined,
	token: string,
	{ origin = host.origin, method = "POST", body, headers = {}, agent }: Sending,
): Promise<Received> {
	const request = httpsRequest(`${origin}/mcp`, {
		method,
		ca: authority.cert,
		...identity,
		...(agent ? { agent } : { agent: false }),
		headers: {
			...MCP_HEADERS,
			...(body && { "content-type": "application/json" }),
			authorization: `Bearer ${token}`,
			...headers,
		},
	});
	request.end(body && JSON.stringify(body));
	const [response] = (await once(request, "response")) as [IncomingMessage];
	const isResumed = (response.socket as TLSSocket).isSessionReused();
	return { status: response.statusCode, headers: response.headers, body: await text(response), isResumed };
}

async function tokenOf(identity: Identity): Promise<string> {
	return sign(issuer, boundToCertificate(identity));
}

describe("a token that is bound to a client certificate, on a TLS host", () => {
	it.each<[string, () => Identity | undefined, () => Identity, number]>([
		["is good with its certificate", () => alice, () => alice, 200],
		["is refused with another certificate", () => bob, () => alice, 401],
		["is refused without one", () => undefined, () => alice, 401],
		["is refused with one that the host does not trust", () => stranger, () => stranger, 401],
	])("%s", async (_, presented, bound, status) => {
		const response = await send(presented(), await tokenOf(bound()), { body: INITIALIZE });
		expect(response.status).toBe(status);
		if (status === 401) expect(response.headers["www-authenticate"]).toMatch(/^Bearer error="invalid_token"/);
	});

	it("is good on a resumed TLS session", async () => {
		const agent = new Agent({ keepAlive: false, maxCachedSessions: 1 });
		const token = await tokenOf(alice);
		const first = await send(alice, token, { body: INITIALIZE, agent });
		const second = await send(alice, token, { body: INITIALIZE, agent });
		expect([first.status, second.status]).toEqual([200, 200]);
		expect([first.isResumed, second.isResumed]).toEqual([false, true]);
	});

	it("is refused without TLS", async () => {
		const plain = await startHost(tokens());
		try {
			const headers = {
				...MCP_HEADERS,
				"content-type": "application/json",
				authorization: `Bearer ${await tokenOf(alice)}`,
			};
			const init = { method: "POST", headers, body: JSON.stringify(INITIALIZE) };
			expect((await fetch(`${plain.origin}/mcp`, init)).status).toBe(401);
		} finally {
			await plain.close();
		}
	});

	it("is refused on node:http without its certificate, and good with it", async () => {
		const guard = await createNodeGuard({ data: DATA, tokens: tokens() });
		const listener = guard.listener((_request, response) => void response.writeHead(202).end());
		const node = createServer(tls(), listener).listen(0, "127.0.0.1");
		await once(node, "listening");
		const origin = `https://127.0.0.1:${(node.address() as AddressInfo).port}`;
		try {
			const token = await tokenOf(alice);
			expect((await send(bob, token, { origin, body: INITIALIZE })).status).toBe(401);
			expect((await send(alice, token, { origin, body: INITIALIZE })).status).toBe(202);
		} finally {
			await guard.close();
			node.close();
		}
	});
});

describe("a session that was opened with a client certificate", () => {
	it("goes on with it, and ends when a token of another certificate comes", async () => {
		const mine = await tokenOf(alice);
		const opened = await send(alice, mine, { body: INITIALIZE });
		const session = { "mcp-session-id": String(opened.headers["mcp-session-id"]) };
		const called = await send(alice, await tokenOf(alice), { body: echo("hello"), headers: session });
		const [, cursor = ""] = /^id: (.*)$/m.exec(called.body) ?? [];
		const resume = { method: "GET", headers: { ...session, "last-event-id": cursor } };

		const resumed = await send(alice, mine, resume);
		expect(resumed.body).toContain("hello");

		const stolen = await send(bob, await tokenOf(bob), resume);
		expect(stolen.status).toBe(403);
		expect(stolen.body).not.toContain("hello");
		expect(host.codes.at(-1)).toBe("principal_drift");
		expect((await send(alice, mine, resume)).status).toBe(404);
	});
});
