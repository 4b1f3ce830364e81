import { beforeAll, describe, expect, it, vi } from "vitest";
import { createTokenVerifier, type TokenDeviations, type TokenVerifier } from "../../src/tokens/index.ts";
import {
	claims,
	createSigner,
	DATA,
	ISSUER,
	REQUEST,
	RESOURCE,
	refusal,
	type Signer,
	sign,
} from "./support.ts";

const OPAQUE = { code: "token_invalid", message: "The access token is not valid" };

let signer: Signer;
let verify: TokenVerifier;

function verifier(allow?: TokenDeviations): TokenVerifier {
	return createTokenVerifier({ issuer: ISSUER, jwks: { keys: [signer.jwk] }, ...(allow && { allow }) }, DATA);
}

/** Signs a payload that JSON.stringify would not make. */
async function signText(payload: string | Uint8Array): Promise<string> {
	const bytes = typeof payload === "string" ? new TextEncoder().encode(payload) : payload;
	const { CompactSign } = await import("jose");
	return new CompactSign(bytes)
		.setProtectedHeader({ alg: signer.alg, kid: "1", typ: "at+jwt" })
		.sign(signer.privateKey);
}

beforeAll(async () => {
	signer = await createSigner("ES256", "1");
	verify = verifier();
});

describe("a good token", () => {
	it("resolves with its claims as they are", async () => {
		const token = await sign(signer, { scope: "a b", tenant: { id: 7 } });
		expect(await verify(token, REQUEST)).toEqual(claims({ scope: "a b", tenant: { id: 7 } }));
	});

	it.each([
		["one audience", RESOURCE],
		["a list of one", [RESOURCE]],
		["a foreign audience beside", ["https://other.example", RESOURCE]],
	])("%s", async (_, aud) => {
		expect(await verify(await sign(signer, { aud }), REQUEST)).toMatchObject({ aud });
	});

	it("has the audience of what policy data names, below wildcards too", async () => {
		const data = { ...DATA, coverage: { [RESOURCE]: [`${RESOURCE}/tools/*`] } };
		const covered = createTokenVerifier({ issuer: ISSUER, jwks: { keys: [signer.jwk] } }, data);
		const token = await sign(signer, { aud: `${RESOURCE}/tools/search` });
		expect(await covered(token, REQUEST)).toMatchObject({ sub: "alice" });
		expect(await refusal(verify(token, REQUEST))).toMatchObject(OPAQUE);
	});
});

describe("claims of RFC 9068 section 2.2", () => {
	const wrong: Record<string, unknown[]> = {
		iss: [undefined, null, "", 1, [ISSUER], `${ISSUER}/`, ISSUER.toUpperCase(), "https://evil.example"],
		sub: [undefined, null, "", 1, ["alice"], {}, true],
		exp: [undefined, null, "", "9999999999", [9999999999], {}, true],
		aud: [
			undefined,
			null,
			"",
			1,
			[],
			{},
			[1],
			[RESOURCE, 1],
			[RESOURCE, ""],
			[RESOURCE, null],
			[[RESOURCE]],
			`${RESOURCE} https://other.example`,
			`${RESOURCE}/`,
			"https://other.example",
			["https://other.example", "urn:x"],
		],
		client_id: [undefined, null, "", 1, ["app"], {}],
		iat: [undefined, null, "", "0", [0], {}],
		jti: [undefined, null, "", 1, ["1"], {}],
		nbf: [null, "", "0", [0], {}],
		azp: [null, "", 1, ["app"]],
		cnf: [null, {}, { jkt: "x" }, "x"],
	};
	const cases = Object.entries(wrong).flatMap(([claim, values]) =>
		values.map((value) => [claim, value === undefined ? "absent" : JSON.stringify(value), value] as const),
	);

	it.each(cases)("%s %s is refused", async (claim, _, value) => {
		const error = await refusal(verify(await sign(signer, { [claim]: value }), REQUEST));
		expect(error).toMatchObject({ ...OPAQUE, cause: { message: expect.stringMatching(`^${claim} `) } });
	});

	it.each(cases)(
		"%s %s is refused whatever is allowed, or a claim that may be absent",
		async (claim, _, value) => {
			const lenient = verifier({ untyped: true, azp: true, absent: ["client_id", "iat", "jti"] });
			const verification = lenient(await sign(signer, { [claim]: value }), REQUEST);
			if (value === undefined && ["client_id", "iat", "jti"].includes(claim)) {
				expect(await verification).not.toHaveProperty(claim);
			} else {
				expect(await refusal(verification)).toMatchObject(OPAQUE);
			}
		},
	);
});

describe("a payload that is no JWT claims set", () => {
	it.each([
		["an array", "[]"],
		["null", "null"],
		["a string", '"alice"'],
		["no JSON", "secret-payload"],
		["an infinite exp", JSON.stringify(claimsText()).replace('"EXP"', "1e999")],
		[
			"a lone surrogate in sub",
			JSON.stringify(claimsText()).replace("alice", "\\ud800").replace('"EXP"', "9e9"),
		],
		["a lone surrogate deep inside", `{"act":[{"sub":"\\udc00"}],${rest()}`],
		["a lone surrogate in a name", `{"\\ud800":1,${rest()}`],
	])("%s", async (_, payload) => {
		const error = await refusal(verify(await signText(payload), REQUEST));
		expect(error).toMatchObject(OPAQUE);
		expect(String((error.cause as Error).stack)).not.toContain("secret");
	});

	it("bytes that are no UTF-8", async () => {
		const bytes = new TextEncoder().encode(JSON.stringify(claims({ sub: "#" })));
		const latin1 = bytes.map((byte) => (byte === 0x23 ? 0xe9 : byte));
		expect(await refusal(verify(await signText(latin1), REQUEST))).toMatchObject(OPAQUE);
	});

	it("a pair of surrogates is a character", async () => {
		expect(await verify(await sign(signer, { sub: "😀" }), REQUEST)).toMatchObject({ sub: "😀" });
	});
});

describe("the clock", () => {
	const now = 1_796_000_000;
	const skew = 30;

	async function at(time: number, changes: Record<string, unknown>, data = DATA) {
		const token = await sign(signer, { iat: now - 1000, exp: now + 1000, ...changes });
		vi.useFakeTimers({ toFake: ["Date"], now: time * 1000 });
		try {
			const clocked = createTokenVerifier({ issuer: ISSUER, jwks: { keys: [signer.jwk] } }, data);
			return await clocked(token, REQUEST).then(
				() => "good",
				(error) => error.code,
			);
		} finally {
			vi.useRealTimers();
		}
	}

	it.each([
		["exp to come", { exp: now + 1 }, "good"],
		["exp just past, within the skew", { exp: now - skew + 1 }, "good"],
		["exp past by the skew", { exp: now - skew }, "token_expired"],
		["exp past", { exp: now - 1000 }, "token_expired"],
		["exp long past", { exp: 0 }, "token_expired"],
		["exp with a fraction", { exp: now - skew + 0.5 }, "good"],
		["nbf now", { nbf: now }, "good"],
		["nbf to come, within the skew", { nbf: now + skew }, "good"],
		["nbf to come", { nbf: now + skew + 1 }, "token_invalid"],
		["iat to come, within the skew", { iat: now + skew }, "good"],
		["iat to come", { iat: now + skew + 1 }, "token_invalid"],
	])("%s: %s", async (_, changes, outcome) => {
		expect(await at(now, changes)).toBe(outcome);
	});

	it("has the skew of policy data", async () => {
		expect(await at(now, { exp: now - 59 }, { ...DATA, clock_skew: 60 })).toBe("good");
		expect(await at(now, { exp: now }, { ...DATA, clock_skew: 0 })).toBe("token_expired");
		expect(await at(now, { exp: now + 1 }, { ...DATA, clock_skew: 0 })).toBe("good");
	});

	it("calls expired only what is good otherwise", async () => {
		expect(await at(now, { exp: now - 1000, aud: "https://other.example" })).toBe("token_invalid");
		expect(await at(now, { exp: now - 1000, client_id: undefined })).toBe("token_invalid");
		expect(await at(now, { exp: now - 1000, cnf: { jkt: "x" } })).toBe("token_invalid");
	});

	it("has fixed words for expired", async () => {
		const error = await refusal(verify(await sign(signer, { exp: 1 }), REQUEST));
		expect(error).toMatchObject({ code: "token_expired", message: "The access token has expired" });
		expect(error.cause).toBeUndefined();
	});
});

describe("the type of a token", () => {
	it.each([
		["at+jwt", true],
		["AT+JWT", true],
		["application/at+jwt", true],
		["Application/AT+JWT", true],
		["JWT", false],
		["jwt", false],
		[undefined, false],
		["", false],
		[null, false],
		[1, false],
		["at+jwt;v=1", false],
		["application/application/at+jwt", false],
		["id_token", false],
		["id+jwt", false],
		["logout+jwt", false],
		["secevent+jwt", false],
		["dpop+jwt", false],
		["token-introspection+jwt", false],
		["JOSE", false],
	])("typ %s: %s", async (typ, good) => {
		const verification = verify(await sign(signer, {}, { typ }), REQUEST);
		if (good) expect(await verification).toMatchObject({ sub: "alice" });
		else expect(await refusal(verification)).toMatchObject(OPAQUE);
	});

	it.each([
		["JWT", true],
		["jwt", true],
		["application/jwt", true],
		[undefined, true],
		["at+jwt", true],
		["", false],
		[null, false],
		["id_token", false],
		["logout+jwt", false],
		["secevent+jwt", false],
		["dpop+jwt", false],
		["JOSE", false],
	])("typ %s: %s, if untyped tokens are allowed", async (typ, good) => {
		const verification = verifier({ untyped: true })(await sign(signer, {}, { typ }), REQUEST);
		if (good) expect(await verification).toMatchObject({ sub: "alice" });
		else expect(await refusal(verification)).toMatchObject(OPAQUE);
	});
});

describe("another token of the same issuer", () => {
	it.each([
		["an ID token (aud is the client)", { aud: "app" }],
		["an ID token with a nonce", { nonce: "n" }],
		["an ID token of the code flow", { at_hash: "h" }],
		["an ID token of the hybrid flow", { c_hash: "h" }],
		["an ID token with s_hash", { s_hash: "h" }],
		["a logout token", { events: { "http://schemas.openid.net/event/backchannel-logout": {} } }],
		["an ID token of Amazon Cognito", { token_use: "id" }],
		["an ID token of Keycloak", { typ: "ID" }],
		["a refresh token of Keycloak", { typ: "Refresh" }],
	])("%s is refused, also if untyped tokens are allowed", async (_, changes) => {
		const token = await sign(signer, changes, { typ: "JWT" });
		expect(await refusal(verify(token, REQUEST))).toMatchObject(OPAQUE);
		expect(await refusal(verifier({ untyped: true })(token, REQUEST))).toMatchObject(OPAQUE);
	});

	it.each([
		["Amazon Cognito", { token_use: "access" }],
		["Keycloak", { typ: "Bearer", azp: "app" }],
	])("an access token of %s is good, if untyped tokens are allowed", async (_, changes) => {
		const token = await sign(signer, changes, { typ: "JWT" });
		expect(await verifier({ untyped: true })(token, REQUEST)).toMatchObject(changes);
	});

	it("does not matter where typ says that it is an access token", async () => {
		expect(await verify(await sign(signer, { nonce: "n" }), REQUEST)).toMatchObject({ nonce: "n" });
	});
});

describe("what an issuer does less", () => {
	it.each<[string, TokenDeviations | undefined, Record<string, unknown>, boolean]>([
		["azp for client_id", undefined, { client_id: undefined, azp: "app" }, false],
		["azp for client_id", { azp: true }, { client_id: undefined, azp: "app" }, true],
		["neither azp nor client_id", { azp: true }, { client_id: undefined }, false],
		["client_id, where azp may stand for it", { azp: true }, {}, true],
		["client_id and azp", undefined, { azp: "other" }, true],
		["no client_id", { absent: ["jti", "iat"] }, { client_id: undefined }, false],
		["no client_id", { absent: ["client_id"] }, { client_id: undefined }, true],
		["no jti", { absent: ["client_id"] }, { jti: undefined }, false],
		["no jti", { absent: ["jti"] }, { jti: undefined }, true],
		["no iat", { absent: ["jti"] }, { iat: undefined }, false],
		["no iat", { absent: ["iat"] }, { iat: undefined }, true],
	])("%s under %j", async (_, allow, changes, good) => {
		const verification = verifier(allow)(await sign(signer, changes), REQUEST);
		if (good) expect(await verification).toMatchObject({ sub: "alice" });
		else expect(await refusal(verification)).toMatchObject(OPAQUE);
	});
});

function claimsText(): Record<string, unknown> {
	return { iss: ISSUER, sub: "alice", aud: RESOURCE, client_id: "app", iat: 1, jti: "1", exp: "EXP" };
}

function rest(): string {
	return JSON.stringify({ ...claimsText(), exp: 9e9 }).slice(1);
}
