import { createHmac } from "node:crypto";
import { base64url, CompactEncrypt, exportJWK, exportSPKI } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import { createTokenVerifier, type TokenVerifier } from "../../src/tokens/index.ts";
import {
	claims,
	createSigner,
	DATA,
	ISSUER,
	listen,
	REQUEST,
	refusal,
	type Signer,
	sign,
} from "./support.ts";

const OPAQUE = { code: "token_invalid", message: "The access token is not valid" };

const encode = (value: unknown) =>
	base64url.encode(typeof value === "string" ? value : JSON.stringify(value));

let signers: Map<string, Signer>;
let rsa: Signer;
let verify: TokenVerifier;

function signerOf(alg: string): Signer {
	const signer = signers.get(alg);
	if (!signer) throw new Error(alg);
	return signer;
}

beforeAll(async () => {
	const algorithms = ["RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA"];
	const all = await Promise.all(algorithms.map((alg) => createSigner(alg, alg)));
	signers = new Map(all.map((signer) => [signer.alg, signer]));
	rsa = signerOf("RS256");
	verify = createTokenVerifier({ issuer: ISSUER, jwks: { keys: all.map((signer) => signer.jwk) } }, DATA);
});

describe("signatures", () => {
	it.each(["RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA"])("%s", async (alg) => {
		expect(await verify(await sign(signerOf(alg)), REQUEST)).toMatchObject({ sub: "alice" });
	});

	it("only the algorithms that were listed", async () => {
		const jwks = { keys: [...signers.values()].map((signer) => signer.jwk) };
		const narrow = createTokenVerifier({ issuer: ISSUER, jwks, algorithms: ["ES256"] }, DATA);
		expect(await narrow(await sign(signerOf("ES256")), REQUEST)).toMatchObject({ sub: "alice" });
		expect(await refusal(narrow(await sign(rsa), REQUEST))).toMatchObject(OPAQUE);
	});

	it("another key under the same kid", async () => {
		const forger = await createSigner("RS256", "RS256");
		const error = await refusal(verify(await sign(forger), REQUEST));
		expect(error).toMatchObject({ ...OPAQUE, cause: { code: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED" } });
	});

	it("claims that were changed after signing", async () => {
		const [header, , signature] = (await sign(rsa)).split(".");
		const token = `${header}.${encode(claims({ sub: "mallory" }))}.${signature}`;
		expect(await refusal(verify(token, REQUEST))).toMatchObject(OPAQUE);
	});

	it("a signature that was left out", async () => {
		const [header, payload] = (await sign(rsa)).split(".");
		expect(await refusal(verify(`${header}.${payload}.`, REQUEST))).toMatchObject(OPAQUE);
		expect(await refusal(verify(`${header}.${payload}`, REQUEST))).toMatchObject(OPAQUE);
	});
});

describe("confusion of algorithms", () => {
	it.each(["none", "None", "NONE", ""])("alg %j", async (alg) => {
		const header = encode({ alg, typ: "at+jwt", kid: "RS256" });
		expect(await refusal(verify(`${header}.${encode(claims())}.`, REQUEST))).toMatchObject(OPAQUE);
		expect(await refusal(verify(`${header}.${encode(claims())}.AAAA`, REQUEST))).toMatchObject(OPAQUE);
	});

	it.each(["HS256", "HS384", "HS512"])("%s with the public key as secret", async (alg) => {
		const secrets = [
			await exportSPKI(rsa.publicKey),
			(await exportSPKI(rsa.publicKey)).trim(),
			JSON.stringify(rsa.jwk),
			rsa.jwk.n ?? "",
		];
		for (const secret of secrets) {
			const input = `${encode({ alg, typ: "at+jwt", kid: "RS256" })}.${encode(claims())}`;
			const mac = createHmac(alg.replace("HS", "sha"), secret).update(input).digest("base64url");
			const error = await refusal(verify(`${input}.${mac}`, REQUEST));
			expect(error).toMatchObject({ ...OPAQUE, cause: { code: "ERR_JOSE_ALG_NOT_ALLOWED" } });
		}
	});

	it("HS256 with a secret that is in the JWK Set", async () => {
		const secret = "a secret that is long enough for it";
		const jwks = { keys: [{ kty: "oct", kid: "s", alg: "HS256", k: encode(secret) }] };
		const input = `${encode({ alg: "HS256", typ: "at+jwt", kid: "s" })}.${encode(claims())}`;
		const mac = createHmac("sha256", secret).update(input).digest("base64url");
		const careless = createTokenVerifier({ issuer: ISSUER, jwks }, DATA);
		expect(await refusal(careless(`${input}.${mac}`, REQUEST))).toMatchObject(OPAQUE);
	});

	it("a key of another kind than alg", async () => {
		const token = await sign(rsa, {}, { kid: "ES256" });
		expect(await refusal(verify(token, REQUEST))).toMatchObject(OPAQUE);
	});

	it.each([["HS256"], ["none"], ["RS256", "HS512"], ["dir"], ["RS257"], []])(
		"options with the algorithms %s %s",
		(...algorithms) => {
			expect(() => createTokenVerifier({ issuer: ISSUER, jwks: { keys: [] }, algorithms }, DATA)).toThrow(
				TypeError,
			);
		},
	);
});

describe("headers that would choose the key", () => {
	it.each([
		["a path", "../../../../dev/null"],
		["SQL", "x' UNION SELECT 'secret"],
		["a name that every object has", "__proto__"],
		["another name that every object has", "constructor"],
		["the empty string", ""],
		["a number", 1],
		["a list", ["RS256"]],
		["an object", { toString: "RS256" }],
		["another case", "rs256"],
		["an unknown one", "2"],
	])("kid: %s", async (_, kid) => {
		expect(await refusal(verify(await sign(rsa, {}, { kid }), REQUEST))).toMatchObject(OPAQUE);
	});

	it("no kid, where one key fits, and where several do", async () => {
		const other = await createSigner("RS256", "other");
		const one = createTokenVerifier({ issuer: ISSUER, jwks: { keys: [rsa.jwk] } }, DATA);
		const two = createTokenVerifier({ issuer: ISSUER, jwks: { keys: [rsa.jwk, other.jwk] } }, DATA);
		const token = await sign(rsa, {}, { kid: undefined });
		expect(await one(token, REQUEST)).toMatchObject({ sub: "alice" });
		expect(await refusal(two(token, REQUEST))).toMatchObject(OPAQUE);
	});

	it("jwk, jku, x5u and x5c are not looked at", async () => {
		const forger = await createSigner("RS256", "RS256");
		const server = await listen((_, response) => response.end(JSON.stringify({ keys: [forger.jwk] })));
		try {
			const headers = {
				jwk: await exportJWK(forger.publicKey),
				jku: `${server.origin}/jwks`,
				x5u: `${server.origin}/x5u`,
				x5c: ["MIIB"],
			};
			for (const [name, value] of Object.entries(headers)) {
				const forged = await sign(forger, {}, { [name]: value });
				expect(await refusal(verify(forged, REQUEST))).toMatchObject(OPAQUE);
				expect(await verify(await sign(rsa, {}, { [name]: value }), REQUEST)).toMatchObject({ sub: "alice" });
			}
			expect(server.asked).toEqual([]);
		} finally {
			await server.close();
		}
	});
});

describe("what is no compact JWS of an access token", () => {
	it.each([
		["a critical extension that nobody knows", { crit: ["x"], x: 1 }],
		["a critical exp", { crit: ["exp"], exp: 1 }],
		["an empty crit", { crit: [] }],
		["b64", { crit: ["b64"], b64: true }],
		["b64 that is not critical", { b64: true }],
	])("%s", async (_, extension) => {
		// By hand: jose makes none of these.
		const header = encode({ alg: "RS256", kid: "RS256", typ: "at+jwt", ...extension });
		const input = `${header}.${encode(claims())}`;
		const bytes = new TextEncoder().encode(input);
		const signature = await crypto.subtle.sign("RSASSA-PKCS1-v1_5", rsa.privateKey, bytes);
		const token = `${input}.${base64url.encode(new Uint8Array(signature))}`;
		expect(await refusal(verify(token, REQUEST))).toMatchObject(OPAQUE);
	});

	it("an encrypted token", async () => {
		const { publicKey } = await createSigner("RS256", "e");
		const key = { ...(await exportJWK(publicKey)), alg: "RSA-OAEP" };
		const token = await new CompactEncrypt(new TextEncoder().encode(JSON.stringify(claims())))
			.setProtectedHeader({ alg: "RSA-OAEP", enc: "A256GCM", typ: "at+jwt" })
			.encrypt(key);
		expect(await refusal(verify(token, REQUEST))).toMatchObject(OPAQUE);
	});

	it.each([
		["empty", ""],
		["opaque", "2YotnFZFEjr1zCsicMWpAA"],
		["two dots alone", ".."],
		["opaque with dots", "c2VjcmV0.c2VjcmV0.c2VjcmV0"],
		["no string", undefined as unknown as string],
		["a number", 1 as unknown as string],
		["an object", { toString: () => "a.b.c" } as unknown as string],
	])("%s", async (_, token) => {
		const error = await refusal(verify(token, REQUEST));
		expect(error).toMatchObject(OPAQUE);
		expect((error.cause as Error).message).not.toContain("secret");
		expect((error.cause as Error).cause).toBeUndefined();
	});

	it.each([
		["a space in front", (token: string) => ` ${token}`],
		["a space behind", (token: string) => `${token} `],
		["a newline behind", (token: string) => `${token}\n`],
		["a tab inside", (token: string) => token.replace(".", "\t.")],
		["padding", (token: string) => `${token}=`],
		["a character outside ASCII", (token: string) => `${token}ä`],
		["a fullwidth dot", (token: string) => token.replace(".", "．")],
		["NUL", (token: string) => `${token}\0`],
		["the scheme", (token: string) => `Bearer ${token}`],
		["a fourth part", (token: string) => `${token}.AAAA`],
	])("%s", async (_, change) => {
		expect(await refusal(verify(change(await sign(rsa)), REQUEST))).toMatchObject(OPAQUE);
	});

	it("larger than 16 KiB", async () => {
		const room = 16_384 - (await sign(rsa, { x: "" })).length;
		const fits = await sign(rsa, { x: "x".repeat(Math.floor(room * 0.75) - 3) });
		expect(fits.length).toBeLessThanOrEqual(16_384);
		expect(await verify(fits, REQUEST)).toMatchObject({ sub: "alice" });
		const large = await sign(rsa, { x: "x".repeat(room) });
		expect(large.length).toBeGreaterThan(16_384);
		expect(await refusal(verify(large, REQUEST))).toMatchObject(OPAQUE);
	});
});

describe("what errors say", () => {
	it("has nothing of the token", async () => {
		const { inspect } = await import("node:util");
		const forger = await createSigner("RS256", "RS256");
		const tokens = [
			await sign(forger, { sub: "secret-sub" }),
			await sign(rsa, { sub: "secret-sub", aud: "https://secret.example" }),
			await sign(rsa, { sub: "secret-sub" }, { kid: "secret-kid" }),
			await sign(rsa, { sub: "secret-sub", exp: 1 }),
			await sign(rsa, { sub: "secret-sub" }, { typ: "secret+jwt" }),
		];
		for (const token of tokens) {
			const text = inspect(await refusal(verify(token, REQUEST)), { depth: 10, showHidden: true });
			expect(text).not.toContain("secret");
			for (const part of token.split(".")) expect(text).not.toContain(part);
		}
	});
});
