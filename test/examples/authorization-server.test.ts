import { execFile } from "node:child_process";
import { once } from "node:events";
import { get } from "node:http";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { auth as authV2, type OAuthClientProvider } from "@modelcontextprotocol/client";
import { auth as authV1 } from "@modelcontextprotocol/sdk/client/auth.js";
import { decodeProtectedHeader } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
	type AuthorizationServer,
	startAuthorizationServer,
} from "../../examples/fastify/authorization-server.ts";
import { createTokenVerifier, type TokenVerifier } from "../../src/tokens/index.ts";
import { type Loopback, listen, REQUEST, refusal } from "../tokens/support.ts";

const SCOPES = ["tools:read", "tools:write"];
const CLIENT = { client_id: "batch", client_secret: "not a secret" };
const RESOURCE = "https://rs.example";
const REDIRECT = "http://127.0.0.1:9/callback";

let as: AuthorizationServer;
let mcp: Loopback;
let verify: TokenVerifier;

beforeAll(async () => {
	mcp = await listen((request, response) => {
		if (request.url !== "/.well-known/oauth-protected-resource/mcp") return response.writeHead(404).end();
		const metadata = { resource: `${mcp.origin}/mcp`, authorization_servers: [as.issuer] };
		return response.setHeader("content-type", "application/json").end(JSON.stringify(metadata));
	});
	as = await startAuthorizationServer({
		resources(indicator) {
			if (indicator === "https://rs.example/plain") return true;
			return (indicator === RESOURCE || indicator.startsWith(`${mcp.origin}/mcp`)) && SCOPES;
		},
		scopes: SCOPES,
		clients: [CLIENT],
	});
	const data = {
		resources: [RESOURCE, "https://rs.example/plain", `${mcp.origin}/mcp`],
		coverage: { [RESOURCE]: [`${RESOURCE}/tools/*`] },
	};
	verify = createTokenVerifier({ issuer: as.issuer, jwks: as.jwks }, data);
});

afterAll(async () => {
	await as.close();
	await mcp.close();
});

async function getJson(path: string): Promise<Record<string, unknown>> {
	const response = await fetch(new URL(path, as.issuer));
	expect(response.status).toBe(200);
	return (await response.json()) as Record<string, unknown>;
}

async function request(parameters: Record<string, string> | string[][]) {
	const credentials = [CLIENT.client_id, CLIENT.client_secret].map(encodeURIComponent).join(":");
	const body = new URLSearchParams(parameters);
	body.set("grant_type", "client_credentials");
	const response = await fetch(new URL("/token", as.issuer), {
		method: "POST",
		headers: { authorization: `Basic ${btoa(credentials)}` },
		body,
	});
	return { status: response.status, body: (await response.json()) as Record<string, string> };
}

describe("client credentials", () => {
	it("get a token for one resource that the verifier takes", async () => {
		const { status, body } = await request({ resource: RESOURCE, scope: "tools:read" });
		expect(status).toBe(200);
		const token = body.access_token ?? "";
		expect(decodeProtectedHeader(token)).toMatchObject({ alg: "ES256", typ: "at+jwt" });
		expect(await verify(token, REQUEST)).toEqual({
			iss: as.issuer,
			sub: "batch",
			client_id: "batch",
			aud: RESOURCE,
			scope: "tools:read",
			iat: expect.any(Number),
			exp: expect.any(Number),
			jti: expect.any(String),
		});
	});

	it.each([
		[
			"scopes that the resource does not have",
			{ resource: RESOURCE, scope: "tools:read admin" },
			"tools:read",
		],
		["no scope", { resource: RESOURCE }, undefined],
		["a resource without scopes", { resource: "https://rs.example/plain", scope: "tools:read" }, undefined],
	])("%s", async (_, parameters, scope) => {
		const { body } = await request(parameters);
		expect((await verify(body.access_token ?? "", REQUEST)).scope).toBe(scope);
	});

	it.each<[string, string[][]]>([
		["a resource that is not allowed", [["resource", "https://evil.example"]]],
		["a look-alike", [["resource", `${RESOURCE}/`]]],
		["no URI", [["resource", "rs.example"]]],
		[
			"two resources",
			[
				["resource", RESOURCE],
				["resource", "https://rs.example/plain"],
			],
		],
	])("%s: invalid_target", async (_, parameters) => {
		expect(await request(parameters)).toMatchObject({ status: 400, body: { error: "invalid_target" } });
	});

	it("without a resource get nothing that the verifier takes", async () => {
		const { body } = await request({});
		expect(await refusal(verify(body.access_token ?? "", REQUEST))).toMatchObject({ code: "token_invalid" });
	});

	it("are checked", async () => {
		const response = await fetch(new URL("/token", as.issuer), {
			method: "POST",
			headers: { authorization: `Basic ${btoa("batch:wrong")}` },
			body: new URLSearchParams({ grant_type: "client_credentials", resource: RESOURCE }),
		});
		expect(response.status).toBe(401);
	});
});

describe("metadata", () => {
	it("is the same where OAuth and where OpenID clients look", async () => {
		const metadata = await getJson("/.well-known/oauth-authorization-server");
		expect(metadata).toEqual(await getJson("/.well-known/openid-configuration"));
		expect(metadata).toMatchObject({
			issuer: as.issuer,
			jwks_uri: as.jwks,
			code_challenge_methods_supported: ["S256"],
			grant_types_supported: expect.arrayContaining([
				"authorization_code",
				"client_credentials",
				"refresh_token",
			]),
		});
		expect(metadata).not.toHaveProperty("dpop_signing_alg_values_supported");
	});

	it("has keys without their private part", async () => {
		const { keys } = await getJson(as.jwks);
		expect(keys).toEqual([expect.objectContaining({ kty: "EC", alg: "ES256", use: "sig" })]);
		expect(JSON.stringify(keys)).not.toContain('"d":');
	});

	it("is enough for the verifier to find the keys", async () => {
		const discovering = createTokenVerifier({ issuer: as.issuer }, { resources: [RESOURCE] });
		const token = await as.mint({ sub: "bob", client_id: "app", aud: RESOURCE });
		expect(await discovering(token, REQUEST)).toMatchObject({ sub: "bob" });
	});

	it("is not for a name that was rebound to the loopback address", async () => {
		const asking = get(as.jwks, { headers: { host: "evil.example" }, agent: false });
		const [response] = await once(asking, "response");
		response.resume();
		expect(response.statusCode).toBe(403);
	});
});

describe("mint", () => {
	it("signs any claims with the key that is published", async () => {
		const aud = [`${RESOURCE}/tools/search`, `${RESOURCE}/tools/fetch`];
		const exp = Math.floor(Date.now() / 1000) + 5;
		const token = await as.mint({ sub: "bob", client_id: "app", aud, scope: "a b", exp });
		expect(await verify(token, REQUEST)).toMatchObject({
			iss: as.issuer,
			sub: "bob",
			client_id: "app",
			aud,
			scope: "a b",
			exp,
		});
	});

	it("takes scopes as a list, too, and leaves out none", async () => {
		const claims = { sub: "bob", client_id: "app", aud: RESOURCE };
		expect(await verify(await as.mint({ ...claims, scope: ["a", "b"] }), REQUEST)).toMatchObject({
			scope: "a b",
		});
		expect(await verify(await as.mint({ ...claims, scope: [] }), REQUEST)).not.toHaveProperty("scope");
		expect(await verify(await as.mint(claims), REQUEST)).not.toHaveProperty("scope");
	});

	it("makes expired tokens and foreign ones", async () => {
		const claims = { sub: "bob", client_id: "app", aud: RESOURCE };
		const expired = as.mint({ ...claims, exp: Math.floor(Date.now() / 1000) - 60 });
		expect(await refusal(verify(await expired, REQUEST))).toMatchObject({ code: "token_expired" });
		const foreign = as.mint({ ...claims, aud: "https://other.example" });
		expect(await refusal(verify(await foreign, REQUEST))).toMatchObject({ code: "token_invalid" });
	});

	it("never makes the same token twice", async () => {
		const claims = { sub: "bob", client_id: "app", aud: RESOURCE, exp: 4e9 };
		const [one, other] = await Promise.all([as.mint(claims), as.mint(claims)]);
		expect((await verify(one, REQUEST)).jti).not.toBe((await verify(other, REQUEST)).jti);
	});
});

/** What a browser does with an authorization URL, up to the redirect back to the client. */
async function browse(url: URL): Promise<URL> {
	const cookies = new Map<string, string>();
	let at = url;
	while (!at.href.startsWith(REDIRECT)) {
		const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
		const response = await fetch(at, { redirect: "manual", headers: { cookie } });
		for (const set of response.headers.getSetCookie()) {
			const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
			cookies.set(name, value);
		}
		const location = response.headers.get("location");
		if (!location) throw new Error(`${response.status} ${await response.text()}`);
		at = new URL(location, at);
	}
	return at;
}

/** A client that keeps all it learns in memory. */
function createClient() {
	const kept: { url?: URL; tokens?: { access_token: string; refresh_token?: string | undefined } } = {};
	let information: Awaited<ReturnType<OAuthClientProvider["clientInformation"]>>;
	let tokens: Awaited<ReturnType<OAuthClientProvider["tokens"]>>;
	let discovery: Awaited<ReturnType<NonNullable<OAuthClientProvider["discoveryState"]>>>;
	let verifier = "";
	const provider: OAuthClientProvider = {
		redirectUrl: REDIRECT,
		clientMetadata: {
			redirect_uris: [REDIRECT],
			client_name: "test",
			grant_types: ["authorization_code", "refresh_token"],
			token_endpoint_auth_method: "none",
			scope: SCOPES.join(" "),
		},
		clientInformation: () => information,
		saveClientInformation: (value) => {
			information = value;
		},
		tokens: () => tokens,
		saveTokens: (value) => {
			tokens = value;
			kept.tokens = value;
		},
		redirectToAuthorization: (url) => {
			kept.url = url;
		},
		saveCodeVerifier: (value) => {
			verifier = value;
		},
		codeVerifier: () => verifier,
		discoveryState: () => discovery,
		saveDiscoveryState: (value) => {
			discovery = value;
		},
	};
	return { provider, kept };
}

describe("the OAuth flow of a real MCP client", () => {
	it.each([
		["v1", authV1 as typeof authV2],
		["v2", authV2],
	])("%s: registers, signs in, gets a token, refreshes it", async (_, auth) => {
		const { provider, kept } = createClient();
		const serverUrl = `${mcp.origin}/mcp`;
		expect(await auth(provider, { serverUrl })).toBe("REDIRECT");
		const back = await browse(kept.url ?? new URL("about:blank"));
		expect(back.searchParams.get("error_description")).toBeNull();
		const authorizationCode = back.searchParams.get("code") ?? "";
		const iss = back.searchParams.get("iss") ?? "";
		expect(await auth(provider, { serverUrl, authorizationCode, iss })).toBe("AUTHORIZED");

		const first = await verify(kept.tokens?.access_token ?? "", REQUEST);
		expect(first).toMatchObject({ sub: "alice", aud: serverUrl, scope: SCOPES.join(" ") });
		expect(await auth(provider, { serverUrl })).toBe("AUTHORIZED");
		const second = await verify(kept.tokens?.access_token ?? "", REQUEST);
		expect(second).toMatchObject({ sub: "alice", client_id: first.client_id, aud: serverUrl });
		expect(second.jti).not.toBe(first.jti);
	});
});

describe("a process of its own", () => {
	it("prints nothing but what it is told to, and ends when the server is closed", async () => {
		const tsx = createRequire(import.meta.url).resolve("tsx/cli");
		const script = `
			import { startAuthorizationServer } from "./examples/fastify/authorization-server.ts";
			const as = await startAuthorizationServer({ resources: () => true, clients: [${JSON.stringify(CLIENT)}] });
			const response = await fetch(as.issuer + "/token", {
				method: "POST",
				headers: { authorization: "Basic " + btoa("batch:not%20a%20secret") },
				body: new URLSearchParams({ grant_type: "client_credentials", resource: "${RESOURCE}" }),
			});
			await fetch(as.issuer + "/auth?client_id=nobody");
			await response.text();
			await as.close();
			console.log(response.status);
		`;
		const args = [tsx, "--input-type=module", "--eval", script];
		const output = await promisify(execFile)(process.execPath, args, { env: { PATH: process.env.PATH } });
		expect(output).toEqual({ stdout: "200\n", stderr: "" });
	}, 30_000);
});
