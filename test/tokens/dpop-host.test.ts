import { EventEmitter, once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import {
	Client,
	DpopSession,
	type OAuthClientProvider,
	StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { DpopOptions, TokenRequest } from "../../src/tokens/index.ts";
import { echo, type Host, INITIALIZE, MCP_HEADERS, startHost } from "./host.ts";
import { boundTo, claims, createSigner, ISSUER, prove, RESOURCE, type Signer, sign } from "./support.ts";

const ALGS = "RS256 PS256 ES256 RS384 PS384 ES384 RS512 PS512 ES512 EdDSA Ed25519";
const METADATA = `resource_metadata="${RESOURCE}/.well-known/oauth-protected-resource"`;

let issuer: Signer;
let holder: Signer;
let thief: Signer;
let host: Host | undefined;

beforeAll(async () => {
	[issuer, holder, thief] = (await Promise.all(
		["issuer", "holder", "thief"].map((name) => createSigner("ES256", name)),
	)) as [Signer, Signer, Signer];
});

afterEach(async () => {
	await host?.close();
	host = undefined;
});

async function start(dpop?: DpopOptions): Promise<Host> {
	host = await startHost({ issuer: ISSUER, jwks: { keys: [issuer.jwk] }, ...(dpop && { dpop }) });
	return host;
}

interface Sending {
	readonly method?: string;
	readonly body?: object;
	readonly headers?: Record<string, string>;
	/** Changes to the proof. */
	readonly proof?: Record<string, unknown>;
}

/** A request with a token that is bound to the signer's key, and its proof, for the URL that clients use. */
async function send(
	{ origin }: Host,
	signer: Signer,
	{ method = "POST", body, headers = {}, proof = {} }: Sending,
): Promise<Response> {
	const token = await sign(issuer, await boundTo(signer));
	return fetch(`${origin}/mcp`, {
		method,
		headers: {
			...MCP_HEADERS,
			...(body && { "content-type": "application/json" }),
			authorization: `DPoP ${token}`,
			dpop: await prove(signer, token, { htm: method, htu: `${RESOURCE}/mcp`, ...proof }),
			...headers,
		},
		...(body && { body: JSON.stringify(body) }),
	});
}

/** Opens a session and calls a tool; the first event id is the cursor to come back with. */
async function openSession(running: Host): Promise<{ session: string; cursor: string }> {
	const opened = await send(running, holder, { body: INITIALIZE });
	expect(opened.status).toBe(200);
	const session = opened.headers.get("mcp-session-id") ?? "";
	await opened.text();
	const called = await send(running, holder, { body: echo("hello"), headers: { "mcp-session-id": session } });
	const [, cursor = ""] = /^id: (.*)$/m.exec(await called.text()) ?? [];
	expect(cursor).not.toBe("");
	return { session, cursor };
}

describe("a host behind a proxy", () => {
	it("lets the holder of the key in, and a proof in once", async () => {
		const running = await start();
		const { session, cursor } = await openSession(running);
		const headers = { "mcp-session-id": session, "last-event-id": cursor };
		const resumed = await send(running, holder, { method: "GET", headers });
		expect(resumed.status).toBe(200);
		expect(await resumed.text()).toContain("hello");
		const ended = await send(running, holder, { method: "DELETE", headers: { "mcp-session-id": session } });
		expect(ended.ok).toBe(true);

		const proof = { jti: "once" };
		expect((await send(running, holder, { body: INITIALIZE, proof })).status).toBe(200);
		expect((await send(running, holder, { body: INITIALIZE, proof })).status).toBe(401);
	});

	it("ends a session that is resumed with another key", async () => {
		const running = await start();
		const { session, cursor } = await openSession(running);
		const headers = { "mcp-session-id": session, "last-event-id": cursor };
		const stolen = await send(running, thief, { method: "GET", headers });
		expect(stolen.status).toBe(403);
		expect(await stolen.text()).not.toContain("hello");
		expect(running.codes.at(-1)).toBe("principal_drift");
		expect((await send(running, holder, { method: "GET", headers })).status).toBe(404);
	});

	it("ends a session that is used with a token that is bound to nothing", async () => {
		const running = await start();
		const { session } = await openSession(running);
		const response = await fetch(`${running.origin}/mcp`, {
			method: "POST",
			headers: {
				...MCP_HEADERS,
				"content-type": "application/json",
				authorization: `Bearer ${await sign(issuer)}`,
				"mcp-session-id": session,
			},
			body: JSON.stringify(echo("hello")),
		});
		expect(response.status).toBe(403);
		expect(running.codes.at(-1)).toBe("principal_drift");
	});
});

describe("what is answered", () => {
	it.each<[string, Sending, string, string]>([
		[
			"to a proof for another method",
			{ proof: { htm: "GET" } },
			"invalid_dpop_proof",
			"The DPoP proof is not valid: htm is not the method of the request",
		],
		[
			"to a proof for the URL that the proxy uses",
			{ proof: { htu: "http://127.0.0.1:3000/mcp" } },
			"invalid_dpop_proof",
			"The DPoP proof is not valid: htu is not the URL of the request",
		],
		[
			"to a header without a proof",
			{ headers: { dpop: "x" } },
			"invalid_dpop_proof",
			"The DPoP proof is not valid: no compact JWS",
		],
	])("%s", async (_, sending, error, description) => {
		const running = await start();
		const response = await send(running, holder, { body: INITIALIZE, ...sending });
		expect(response.status).toBe(401);
		expect(response.headers.get("www-authenticate")).toBe(
			`DPoP error="${error}", error_description="${description}", ${METADATA}, algs="${ALGS}"`,
		);
		expect(response.headers.has("dpop-nonce")).toBe(false);
		expect(await response.json()).toMatchObject({
			jsonrpc: "2.0",
			id: null,
			error: { message: description },
		});
	});

	const opaque = 'error="invalid_token", error_description="The access token is not valid"';

	it("to a bound token that comes as Bearer, with and without its proof", async () => {
		const running = await start();
		const authorization = `Bearer ${await sign(issuer, await boundTo(holder))}`;
		for (const headers of [{ authorization }, { authorization, dpop: "" }]) {
			const response = await send(running, holder, { body: INITIALIZE, headers });
			expect(response.status).toBe(401);
			expect(response.headers.get("www-authenticate")).toBe(`Bearer ${opaque}, ${METADATA}`);
		}
	});

	it("to a token for everyone that comes as DPoP", async () => {
		const running = await start();
		const token = await sign(issuer);
		const headers = { authorization: `DPoP ${token}`, dpop: await prove(holder, token) };
		const response = await send(running, holder, { body: INITIALIZE, headers });
		expect(response.status).toBe(401);
		expect(response.headers.get("www-authenticate")).toBe(`DPoP ${opaque}, ${METADATA}, algs="${ALGS}"`);
	});

	it("to a proof without a nonce, where nonces are asked for", async () => {
		const running = await start({ nonceSecret: new Uint8Array(32).fill(1) });
		const response = await send(running, holder, { body: INITIALIZE });
		expect(response.status).toBe(401);
		expect(response.headers.get("www-authenticate")).toMatch(/^DPoP error="use_dpop_nonce", /);
		const nonce = response.headers.get("dpop-nonce");
		expect((await send(running, holder, { body: INITIALIZE, proof: { nonce } })).status).toBe(200);
	});

	it("to two DPoP headers", async () => {
		const running = await start();
		const token = await sign(issuer, await boundTo(holder));
		const request = httpRequest(`${running.origin}/mcp`, {
			method: "POST",
			headers: {
				...MCP_HEADERS,
				authorization: `DPoP ${token}`,
				dpop: [await prove(holder, token), await prove(holder, token)],
			},
		});
		request.end();
		const [response] = (await once(request, "response")) as [IncomingMessage];
		response.resume();
		expect(response.statusCode).toBe(401);
		expect(response.headers["www-authenticate"]).toMatch(/^DPoP error="invalid_dpop_proof"/);
	});

	it("to two Authorization headers, one of each scheme", async () => {
		const running = await start();
		const authorization = `DPoP ${await sign(issuer)}, Bearer ${await sign(issuer)}`;
		const response = await send(running, holder, { body: INITIALIZE, headers: { authorization } });
		expect(response.status).toBe(400);
		expect(response.headers.get("www-authenticate")).toMatch(/^Bearer error="invalid_request"/);
	});
});

describe("a verifier of the host's own", () => {
	it("is told the scheme, the URL and the headers", async () => {
		const asked: TokenRequest[] = [];
		host = await startHost(async (_token, request) => {
			asked.push(request);
			return claims();
		});
		await send(host, holder, { body: INITIALIZE });
		await send(host, holder, { body: INITIALIZE, headers: { authorization: "Bearer x" } });
		expect(asked).toMatchObject([
			{ scheme: "DPoP", method: "POST", url: `${host.origin}/mcp`, headers: { dpop: expect.any(String) } },
			{ scheme: "Bearer" },
		]);
	});
});

describe("the client of the MCP SDK", () => {
	async function connect(running: Host): Promise<Client> {
		const session = await DpopSession.create();
		const token = await sign(issuer, { cnf: { jkt: session.thumbprint } });
		const provider: OAuthClientProvider = {
			redirectUrl: undefined,
			clientMetadata: { redirect_uris: [] },
			clientInformation: () => ({ client_id: "app" }),
			tokens: () => ({ access_token: token, token_type: "DPoP" }),
			saveTokens: () => undefined,
			redirectToAuthorization: () => Promise.reject(new Error("no authorization is needed")),
			saveCodeVerifier: () => undefined,
			codeVerifier: () => "",
			dpop: () => session,
		};
		const client = new Client({ name: "test", version: "1.0.0" });
		const transport = new StreamableHTTPClientTransport(new URL(`${RESOURCE}/mcp`), {
			authProvider: provider,
			// The proxy.
			fetch: (url, init) => fetch(String(url).replace(RESOURCE, running.origin), init),
			reconnectionOptions: {
				initialReconnectionDelay: 10,
				maxReconnectionDelay: 10,
				reconnectionDelayGrowFactor: 1,
				maxRetries: 5,
			},
		});
		await client.connect(transport);
		return client;
	}

	it.each<[string, DpopOptions | undefined]>([
		["without nonces", undefined],
		["with nonces", { nonceSecret: crypto.getRandomValues(new Uint8Array(32)) }],
	])("calls, drops and resumes, %s", async (_, dpop) => {
		const running = await start(dpop);
		const client = await connect(running);
		const heard = new EventEmitter();
		const onprogress = () => void heard.emit("progress");
		const call = client.callTool({ name: "wait", arguments: {} }, { onprogress });
		await once(heard, "progress");
		running.cut();
		running.release();
		expect(await call).toMatchObject({ content: [{ type: "text", text: "done" }] });
		expect(running.answers).toContainEqual({ method: "GET", status: 200 });
		expect(await client.callTool({ name: "echo", arguments: { value: "again" } })).toMatchObject({
			content: [{ type: "text", text: "again" }],
		});
		// One round more, with the first request, where nonces are asked for.
		expect(running.answers.filter(({ status }) => status === 401)).toHaveLength(dpop ? 1 : 0);
		await client.close();
	});
});
