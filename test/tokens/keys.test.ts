import type { RequestListener } from "node:http";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createTokenVerifier } from "../../src/tokens/index.ts";
import {
	createSigner,
	DATA,
	ISSUER,
	type Loopback,
	listen,
	REQUEST,
	refusal,
	type Signer,
	sign,
} from "./support.ts";

const UNAVAILABLE = {
	code: "token_keys_unavailable",
	message: "The keys to verify access tokens with are not available",
};

let old: Signer;
let rotated: Signer;
let server: Loopback | undefined;

beforeAll(async () => {
	[old, rotated] = await Promise.all([createSigner("ES256", "old"), createSigner("RS256", "rotated")]);
});

afterEach(async () => {
	vi.useRealTimers();
	await server?.close();
	server = undefined;
});

async function serve(handler: RequestListener): Promise<Loopback> {
	server = await listen(handler);
	return server;
}

const json =
	(value: unknown): RequestListener =>
	(_, response) =>
		response.setHeader("content-type", "application/json").end(JSON.stringify(value));

/** Moves the clocks that keys are cached and waited for by; sockets keep real time. */
function clock(): (seconds: number) => void {
	vi.useFakeTimers({ toFake: ["Date", "performance"] });
	return (seconds) => {
		vi.advanceTimersByTime(seconds * 1000);
	};
}

describe("keys at a URL", () => {
	it("are fetched with the first token, once for all that come", async () => {
		const { origin, asked } = await serve(json({ keys: [old.jwk] }));
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${origin}/jwks` }, DATA);
		expect(asked).toEqual([]);
		const token = await sign(old);
		await Promise.all([verify(token, REQUEST), verify(token, REQUEST), verify(token, REQUEST)]);
		await verify(token, REQUEST);
		expect(asked).toEqual(["/jwks"]);
	});

	it("may be given as a URL", async () => {
		const { origin } = await serve(json({ keys: [old.jwk] }));
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: new URL("/jwks", origin) }, DATA);
		expect(await verify(await sign(old), REQUEST)).toMatchObject({ sub: "alice" });
	});

	it("are fetched again for a kid that is not known, after the cooldown", async () => {
		const advance = clock();
		const keys = [old.jwk];
		const { origin, asked } = await serve((request, response) => json({ keys })(request, response));
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${origin}/jwks` }, DATA);
		await verify(await sign(old), REQUEST);

		keys.splice(0, 1, rotated.jwk);
		const token = await sign(rotated);
		expect(await refusal(verify(token, REQUEST))).toMatchObject({ code: "token_invalid" });
		expect(asked).toHaveLength(1);

		advance(31);
		expect(await verify(token, REQUEST)).toMatchObject({ sub: "alice" });
		expect(asked).toHaveLength(2);
		expect(await refusal(verify(await sign(old), REQUEST))).toMatchObject({ code: "token_invalid" });
		expect(asked).toHaveLength(2);
	});

	it("that were withdrawn are forgotten when the cache is old", async () => {
		const advance = clock();
		const keys = [old.jwk, rotated.jwk];
		const { origin } = await serve((request, response) => json({ keys })(request, response));
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${origin}/jwks` }, DATA);
		await verify(await sign(old), REQUEST);
		keys.shift();
		advance(601);
		expect(await refusal(verify(await sign(old), REQUEST))).toMatchObject({ code: "token_invalid" });
	});

	it("are not fetched for what can be no access token", async () => {
		const { origin, asked } = await serve(json({ keys: [old.jwk] }));
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${origin}/jwks` }, DATA);
		const tokens = ["opaque", "a.b.c", await sign(old, {}, { typ: "JWT" })];
		for (const token of tokens) {
			expect(await refusal(verify(token, REQUEST))).toMatchObject({ code: "token_invalid" });
		}
		expect(asked).toEqual([]);
	});
});

describe("keys that cannot be had", () => {
	it.each<[string, RequestListener]>([
		["500", (_, response) => response.writeHead(500).end()],
		["404", (_, response) => response.writeHead(404).end()],
		["a redirect", (_, response) => response.writeHead(302, { location: "/elsewhere" }).end()],
		["no JSON", (_, response) => response.end("<html>")],
		["an empty answer", (_, response) => response.end()],
		["a connection that breaks", (_, response) => response.destroy()],
		[
			"a connection that breaks halfway",
			(_, response) => {
				response.writeHead(200, { "content-length": "1000" }).write("{");
				response.destroy();
			},
		],
		["JSON that is no JWK Set", json({ key: [] })],
		["keys that are no list", json({ keys: {} })],
		["null", json(null)],
	])("%s", async (_, handler) => {
		const { origin, asked } = await serve(handler);
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${origin}/jwks` }, DATA);
		const error = await refusal(verify(await sign(old), REQUEST));
		expect(error).toMatchObject(UNAVAILABLE);
		expect(error.cause).toBeInstanceOf(Error);
		expect(asked).toEqual(["/jwks"]);
	});

	it("a key that is malformed", async () => {
		const { origin } = await serve(json({ keys: [{ ...old.jwk, x: "!" }] }));
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${origin}/jwks` }, DATA);
		expect(await refusal(verify(await sign(old), REQUEST))).toMatchObject(UNAVAILABLE);
	});

	it("a server that is down, and up again: tried again only after a while", async () => {
		const advance = clock();
		const down = await listen(json({}));
		await down.close();
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${down.origin}/jwks` }, DATA);
		const token = await sign(old);
		expect(await refusal(verify(token, REQUEST))).toMatchObject(UNAVAILABLE);

		server = await listen(json({ keys: [old.jwk] }), Number(new URL(down.origin).port));
		expect(await refusal(verify(token, REQUEST))).toMatchObject(UNAVAILABLE);
		expect(server.asked).toEqual([]);
		advance(6);
		expect(await verify(token, REQUEST)).toMatchObject({ sub: "alice" });
	});

	it("do not keep known keys from being good", async () => {
		const advance = clock();
		let status = 200;
		const { origin, asked } = await serve((_, response) =>
			response.writeHead(status).end(JSON.stringify({ keys: [old.jwk] })),
		);
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${origin}/jwks` }, DATA);
		const token = await sign(old);
		await verify(token, REQUEST);
		status = 503;
		advance(31);
		const unknown = await sign(rotated);
		for (let n = 0; n < 3; n++) {
			expect(await refusal(verify(unknown, REQUEST))).toMatchObject(UNAVAILABLE);
			expect(await verify(token, REQUEST)).toMatchObject({ sub: "alice" });
		}
		expect(asked).toHaveLength(2);
	});
});

describe("keys found by the issuer's metadata", () => {
	type Documents = Record<string, (origin: string) => unknown>;

	/** An issuer at `path` whose server has these documents. */
	async function issuerWith(path: string, documents: Documents) {
		const at: Loopback = await serve((request, response) => {
			const document = documents[request.url ?? ""];
			if (document) json(document(at.origin))(request, response);
			else response.writeHead(404).end();
		});
		const issuer = `${at.origin}${path}`;
		const verify = createTokenVerifier({ issuer }, DATA);
		const token = await sign(old, { iss: issuer });
		return { asked: at.asked, verification: () => verify(token, REQUEST) };
	}

	const metadata = (path: string) => (origin: string) => ({
		issuer: `${origin}${path}`,
		jwks_uri: `${origin}/keys`,
	});
	const keys = () => ({ keys: [old.jwk] });

	it.each([
		["RFC 8414", "", "/.well-known/oauth-authorization-server"],
		["OpenID Connect", "", "/.well-known/openid-configuration"],
		["a trailing slash in the issuer", "/", "/.well-known/openid-configuration"],
		["RFC 8414, with a path", "/t/1", "/.well-known/oauth-authorization-server/t/1"],
		["OpenID Connect as RFC 8414 has it, with a path", "/t/1", "/.well-known/openid-configuration/t/1"],
		["OpenID Connect, with a path", "/t/1", "/t/1/.well-known/openid-configuration"],
	])("%s", async (_, path, at) => {
		const { asked, verification } = await issuerWith(path, { [at]: metadata(path), "/keys": keys });
		expect(await verification()).toMatchObject({ sub: "alice" });
		await verification();
		expect(asked.slice(-2)).toEqual([at, "/keys"]);
	});

	it.each<[string, Documents]>([
		["no metadata", { "/keys": keys }],
		[
			"metadata of another issuer",
			{ "/.well-known/oauth-authorization-server": metadata("/other"), "/keys": keys },
		],
		[
			"metadata of the same issuer with a slash",
			{
				"/.well-known/oauth-authorization-server": metadata("/"),
				"/keys": keys,
			},
		],
		["metadata that is null", { "/.well-known/oauth-authorization-server": () => null, "/keys": keys }],
		["no jwks_uri", { "/.well-known/oauth-authorization-server": (issuer) => ({ issuer }), "/keys": keys }],
		[
			"a jwks_uri that is no URL",
			{
				"/.well-known/oauth-authorization-server": (issuer) => ({ issuer, jwks_uri: "/keys" }),
				"/keys": keys,
			},
		],
		[
			"a jwks_uri over http",
			{
				"/.well-known/oauth-authorization-server": (issuer) => ({
					issuer,
					jwks_uri: "http://192.0.2.1/keys",
				}),
			},
		],
		["no keys", { "/.well-known/oauth-authorization-server": metadata("") }],
	])("%s", async (_, documents) => {
		const { asked, verification } = await issuerWith("", documents);
		expect(await refusal(verification())).toMatchObject(UNAVAILABLE);
		const before = asked.length;
		expect(await refusal(verification())).toMatchObject(UNAVAILABLE);
		expect(asked).toHaveLength(before);
	});

	it("goes on to the next place when one has another issuer's metadata", async () => {
		const { verification } = await issuerWith("", {
			"/.well-known/oauth-authorization-server": metadata("/other"),
			"/.well-known/openid-configuration": metadata(""),
			"/keys": keys,
		});
		expect(await verification()).toMatchObject({ sub: "alice" });
	});
});

describe("options", () => {
	it.each([
		["http", "http://as.example/jwks"],
		["http on a name that looks like loopback", "http://127.0.0.1.evil.example/jwks"],
		["http on another name that looks like it", "http://localhost.evil.example/jwks"],
		["another scheme", "file:///etc/jwks.json"],
		["no URL", "jwks.json"],
		["a URL object over http", new URL("http://as.example/jwks")],
		["no JWK Set", { keys: "none" } as never],
		["null", null as never],
	])("jwks: %s is a TypeError", (_, jwks) => {
		expect(() => createTokenVerifier({ issuer: ISSUER, jwks }, DATA)).toThrow(TypeError);
	});

	it.each([
		"https://as.example/jwks",
		"http://localhost:1/jwks",
		"http://127.8.9.1/jwks",
		"http://[::1]:1/jwks",
	])("jwks: %s is fine", (jwks) => {
		expect(() => createTokenVerifier({ issuer: ISSUER, jwks }, DATA)).not.toThrow();
	});

	it.each(["http://as.example", "urn:as", "as.example", "", undefined as never])(
		"issuer %s without jwks is a TypeError",
		(issuer) => {
			expect(() => createTokenVerifier({ issuer }, DATA)).toThrow(TypeError);
		},
	);

	it("any issuer is fine with jwks", () => {
		expect(() => createTokenVerifier({ issuer: "urn:as", jwks: { keys: [] } }, DATA)).not.toThrow();
	});
});
