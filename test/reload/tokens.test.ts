import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import Fastify from "fastify";
import { beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { resumeGuard } from "../../src/hosts/fastify.ts";
import { createFetchGuard } from "../../src/hosts/fetch.ts";
import { createNodeGuard } from "../../src/hosts/node.ts";
import type { PolicyData, ResumeGuard } from "../../src/index.ts";
import { createTokenVerifier, type TokenVerifierOptions } from "../../src/tokens/index.ts";
import {
	boundTo,
	createSigner,
	ISSUER,
	listen,
	prove,
	REQUEST,
	RESOURCE,
	refusal,
	type Signer,
	sign,
} from "../tokens/support.ts";
import { temporaryFolder } from "./support.ts";

const OTHER = "https://other.example/v2/mcp";
let issuer: Signer;
let holder: Signer;

beforeAll(async () => {
	issuer = await createSigner("ES256", "issuer");
	holder = await createSigner("ES256", "holder");
});

describe("a token verifier, when the data changes", () => {
	async function changing(data: PolicyData) {
		const keys = await listen((_, response) => response.end(JSON.stringify({ keys: [issuer.jwk] })));
		onTestFinished(keys.close);
		const state = { data };
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${keys.origin}/jwks` }, () => state.data);
		return { state, verify, keys };
	}

	it("accepts the audiences and the skew of the new one, with the keys that it has", async () => {
		const { state, verify, keys } = await changing({ resources: [RESOURCE], clock_skew: 60 });
		const late = await sign(issuer, { exp: Math.floor(Date.now() / 1000) - 30 });
		const moved = await sign(issuer, { aud: OTHER });
		await expect(verify(late, REQUEST)).resolves.toBeDefined();
		expect(await refusal(verify(moved, REQUEST))).toMatchObject({ code: "token_invalid" });

		state.data = { resources: [OTHER, RESOURCE], clock_skew: 0 };
		await expect(verify(moved, REQUEST)).resolves.toBeDefined();
		expect(await refusal(verify(late, REQUEST))).toMatchObject({ code: "token_expired" });

		state.data = { resources: [OTHER] };
		expect(await refusal(verify(await sign(issuer), REQUEST))).toMatchObject({ code: "token_invalid" });
		expect(keys.asked).toEqual(["/jwks"]);
	});

	it("takes no proof twice, and compares proofs with where it is now", async () => {
		const { state, verify } = await changing({ resources: [RESOURCE] });
		const token = await sign(issuer, { aud: [RESOURCE, OTHER], ...(await boundTo(holder)) });
		const proof = await prove(holder, token);
		const presented = (dpop: string) => ({ ...REQUEST, scheme: "DPoP", headers: { dpop } }) as const;
		await expect(verify(token, presented(proof))).resolves.toBeDefined();

		state.data = { resources: [RESOURCE], clock_skew: 10 };
		expect(await refusal(verify(token, presented(proof)))).toMatchObject({
			code: "dpop_proof_invalid",
			message: expect.stringMatching(/used before/),
		});

		state.data = { resources: [OTHER] };
		const { origin } = new URL(OTHER);
		const there = await prove(holder, token, { htu: `${origin}/mcp` });
		expect(await refusal(verify(token, presented(await prove(holder, token))))).toMatchObject({
			code: "dpop_proof_invalid",
		});
		await expect(verify(token, presented(there))).resolves.toBeDefined();
	});
});

interface Running {
	readonly guard: ResumeGuard;
	ask(path: string, token?: string): Promise<Response>;
	close(): Promise<unknown>;
}

const logger = { debug() {}, info() {}, warn() {}, error() {} };

interface Options {
	readonly data: string;
	readonly watch: true;
	readonly tokens: TokenVerifierOptions;
}

const hosts: Record<string, (options: Options) => Promise<Running>> = {
	async fastify(options) {
		const app = Fastify({ forceCloseConnections: true });
		await app.register(resumeGuard, options);
		const origin = await app.listen({ host: "127.0.0.1", port: 0 });
		return { guard: app.resumeGuard.guard, ask: asker(origin), close: () => app.close() };
	},
	async node(options) {
		const { listener, guard, close } = await createNodeGuard({ ...options, logger });
		const handle = listener(() => {});
		const server = createServer((request, response) => void handle(request, response));
		await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
		const address = server.address();
		const port = typeof address === "object" ? address?.port : undefined;
		return {
			guard,
			ask: asker(`http://127.0.0.1:${port}`),
			async close() {
				await close();
				server.closeAllConnections();
				server.close();
			},
		};
	},
	async fetch(options) {
		const { handle, guard, close } = await createFetchGuard({ ...options, logger });
		const ask: Running["ask"] = async (path, token) => {
			const request = new Request(`http://host${path}`, { headers: headersOf(token) });
			return (await handle(request, () => new Response())) ?? new Response(null, { status: 404 });
		};
		return { guard, ask, close };
	},
};

function asker(origin: string): Running["ask"] {
	return (path, token) => fetch(`${origin}${path}`, { headers: headersOf(token) });
}

function headersOf(token: string | undefined): Record<string, string> {
	return { accept: "text/event-stream", ...(token !== undefined && { authorization: `Bearer ${token}` }) };
}

test.each(Object.entries(hosts))(
	"%s: tokens and the protected-resource metadata are by the data in force, and closing ends the watch",
	async (_, start) => {
		const data = join(temporaryFolder(), "data.json");
		writeFileSync(data, JSON.stringify({ resources: [RESOURCE] }));
		const tokens = { issuer: ISSUER, jwks: { keys: [issuer.jwk] } };
		const { guard, ask, close } = await start({ data, watch: true, tokens });
		const wellKnown = "/.well-known/oauth-protected-resource";
		try {
			expect(await (await ask(wellKnown)).json()).toMatchObject({ resource: RESOURCE });
			expect((await ask(`${wellKnown}/v2/mcp`)).status).toBe(404);
			const token = await sign(issuer, { aud: OTHER });
			const before = await ask("/mcp", token);
			expect(before.status).toBe(401);
			expect(before.headers.get("www-authenticate")).toContain(`${RESOURCE}${wellKnown}"`);

			const changed = new Promise<void>((resolve) => guard.onRevision(resolve));
			writeFileSync(data, JSON.stringify({ resources: [OTHER] }));
			await changed;
			expect(await (await ask(wellKnown)).json()).toMatchObject({ resource: OTHER });
			const there = await ask(`${wellKnown}/v2/mcp?x`);
			expect(there.headers.get("access-control-allow-origin")).toBe("*");
			expect(await there.json()).toMatchObject({ resource: OTHER, authorization_servers: [ISSUER] });
			// It is known, and has no session: nothing of it is asked of the token any more.
			expect((await ask("/mcp", token)).status).toBe(400);
			const after = await ask("/mcp", await sign(issuer));
			expect(after.status).toBe(401);
			expect(after.headers.get("www-authenticate")).toContain(`https://other.example${wellKnown}/v2/mcp"`);

			writeFileSync(data, "{");
			await expect.poll(() => guard.status().lastError?.code).toBe("data_invalid");
		} finally {
			await close();
		}
		const { lastAttempt } = guard.status();
		await new Promise((resolve) => setTimeout(resolve, 500));
		expect(guard.status().lastAttempt).toEqual(lastAttempt);
	},
);
