import { createHash } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { createTokenVerifier, type TokenRequest, type TokenVerifier } from "../../src/tokens/index.ts";
import { boundToCertificate, createPeer, derOf, type Identity } from "./certificates.ts";
import {
	boundTo,
	createSigner,
	DATA,
	ISSUER,
	prove,
	REQUEST,
	refusal,
	type Signer,
	sign,
} from "./support.ts";

let issuer: Signer;
let holder: Signer;
let mine: Identity;
let theirs: Identity;
let verify: TokenVerifier;

beforeAll(async () => {
	[issuer, holder] = await Promise.all([createSigner("ES256", "issuer"), createSigner("ES256", "holder")]);
	[mine, theirs] = await Promise.all([createPeer("mine"), createPeer("theirs")]);
	verify = createTokenVerifier({ issuer: ISSUER, jwks: { keys: [issuer.jwk] } }, DATA);
});

function over(identity: Identity | undefined, changes: Partial<TokenRequest> = {}): TokenRequest {
	return { ...REQUEST, ...(identity && { certificate: derOf(identity) }), ...changes };
}

describe("a token that is bound to a client certificate", () => {
	it("is good with that certificate", async () => {
		const token = await sign(issuer, boundToCertificate(mine));
		expect(await verify(token, over(mine))).toMatchObject(boundToCertificate(mine));
		expect(await verify(token, over(mine, { scheme: "Bearer" }))).toMatchObject({ sub: "alice" });
	});

	it("is refused with another, and without one", async () => {
		const token = await sign(issuer, boundToCertificate(mine));
		const other = { code: "token_invalid", cause: { message: "cnf is of another client certificate" } };
		const none = { code: "token_invalid", cause: { message: "cnf without a client certificate" } };
		expect(await refusal(verify(token, over(theirs)))).toMatchObject(other);
		expect(await refusal(verify(token, over(undefined, { certificate: new Uint8Array(0) })))).toMatchObject(
			other,
		);
		expect(await refusal(verify(token, over(undefined)))).toMatchObject(none);
	});

	it("is refused as DPoP", async () => {
		const token = await sign(issuer, boundToCertificate(mine));
		const headers = { dpop: await prove(holder, token) };
		expect(await refusal(verify(token, over(mine, { scheme: "DPoP", headers })))).toMatchObject({
			code: "token_invalid",
		});
	});

	it.each<[string, (der: Uint8Array, thumbprint: string) => unknown]>([
		["in hex", (der) => createHash("sha256").update(der).digest("hex")],
		["with padding", (_, thumbprint) => `${thumbprint}=`],
		["of SHA-1", (der) => createHash("sha1").update(der).digest("base64url")],
		["empty", () => ""],
		["null", () => null],
		["a list", (_, thumbprint) => [thumbprint]],
	])("is refused with a thumbprint %s", async (_, write) => {
		const thumbprint = write(derOf(mine), boundToCertificate(mine).cnf["x5t#S256"]);
		const token = await sign(issuer, { cnf: { "x5t#S256": thumbprint } });
		expect(await refusal(verify(token, over(mine)))).toMatchObject({ code: "token_invalid" });
	});

	it.each(["x5t", "x5c", "x5u", "X5T#S256"])("is refused under the name %s", async (name) => {
		const token = await sign(issuer, { cnf: { [name]: boundToCertificate(mine).cnf["x5t#S256"] } });
		expect(await refusal(verify(token, over(mine)))).toMatchObject({ code: "token_invalid" });
	});
});

describe("a token that is bound to a certificate and a DPoP key", () => {
	it.each<[string, TokenRequest["scheme"], certificate: boolean, proof: boolean, good: boolean]>([
		["both", "DPoP", true, true, true],
		["the proof alone", "DPoP", false, true, false],
		["the certificate alone", "DPoP", true, false, false],
		["the certificate, as Bearer", "Bearer", true, true, false],
	])("with %s: %s", async (_, scheme, certificate, proof, good) => {
		const cnf = { ...(await boundTo(holder)).cnf, ...boundToCertificate(mine).cnf };
		const token = await sign(issuer, { cnf });
		const headers = proof ? { dpop: await prove(holder, token) } : {};
		const request = over(certificate ? mine : undefined, { headers, ...(scheme && { scheme }) });
		if (good) expect(await verify(token, request)).toMatchObject({ cnf });
		else await expect(verify(token, request)).rejects.toHaveProperty("code");
	});

	it("does not use its proof up where the certificate is wrong", async () => {
		const cnf = { ...(await boundTo(holder)).cnf, ...boundToCertificate(mine).cnf };
		const token = await sign(issuer, { cnf });
		const headers = { dpop: await prove(holder, token) };
		await refusal(verify(token, over(theirs, { scheme: "DPoP", headers })));
		expect(await verify(token, over(mine, { scheme: "DPoP", headers }))).toMatchObject({ sub: "alice" });
	});
});

it("a certificate beside a token that is bound to nothing does not matter", async () => {
	expect(await verify(await sign(issuer), over(mine))).toMatchObject({ sub: "alice" });
});
