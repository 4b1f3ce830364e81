import { createHmac } from "node:crypto";
import { inspect } from "node:util";
import { base64url, exportJWK, exportSPKI } from "jose";
import { beforeAll, describe, expect, it, vi } from "vitest";
import {
	createTokenVerifier,
	type DpopOptions,
	type TokenRequest,
	type TokenVerifier,
} from "../../src/tokens/index.ts";
import {
	boundTo,
	createSigner,
	DATA,
	ISSUER,
	proofClaims,
	prove,
	REQUEST,
	RESOURCE,
	refusal,
	type Signer,
	sign,
} from "./support.ts";

const OPAQUE = { code: "token_invalid", message: "The access token is not valid" };

const encode = (value: unknown) => base64url.encode(JSON.stringify(value));

let issuer: Signer;
let holder: Signer;
let thief: Signer;
let rsa: Signer;
let token: string;
let verify: TokenVerifier;

function verifier(dpop?: DpopOptions, data = DATA): TokenVerifier {
	return createTokenVerifier({ issuer: ISSUER, jwks: { keys: [issuer.jwk] }, ...(dpop && { dpop }) }, data);
}

function presentedWith(
	dpop: string | readonly string[] | undefined,
	changes: Partial<TokenRequest> = {},
): TokenRequest {
	return { ...REQUEST, scheme: "DPoP", headers: { dpop }, ...changes };
}

function invalid(reason: string) {
	return { code: "dpop_proof_invalid", message: `The DPoP proof is not valid: ${reason}` };
}

beforeAll(async () => {
	[issuer, holder, thief, rsa] = await Promise.all([
		createSigner("ES256", "issuer"),
		createSigner("ES256", "holder"),
		createSigner("ES256", "thief"),
		createSigner("RS256", "rsa"),
	]);
	token = await sign(issuer, await boundTo(holder));
	verify = verifier();
});

describe("a good proof", () => {
	it.each(["RS256", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"])(
		"of %s",
		async (alg) => {
			const signer = await createSigner(alg, alg);
			const bound = await sign(issuer, await boundTo(signer));
			const claims = await verify(bound, presentedWith(await prove(signer, bound)));
			expect(claims).toMatchObject({ sub: "alice", ...(await boundTo(signer)) });
		},
	);

	it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
		["typ in another case", {}, { typ: "DPoP+JWT" }],
		["typ as a whole media type", {}, { typ: "application/dpop+jwt" }],
		["exp to come", { exp: 9_999_999_999 }, {}],
		["nbf past", { nbf: 1 }, {}],
		["a claim that nobody knows", { x: [] }, {}],
		["a nonce that nobody asked for", { nonce: "x" }, {}],
		["another way to write the URL", { htu: "HTTPS://RS.example:443/x/../mcp?y#z" }, {}],
	])("with %s", async (_, claims, header) => {
		const proof = await prove(holder, token, claims, header);
		expect(await verify(token, presentedWith(proof))).toMatchObject({ sub: "alice" });
	});

	it.each(["GET", "DELETE"])("for a %s", async (method) => {
		const proof = await prove(holder, token, { htm: method });
		expect(await verify(token, presentedWith(proof, { method }))).toMatchObject({ sub: "alice" });
	});

	it("in a list of one", async () => {
		expect(await verify(token, presentedWith([await prove(holder, token)]))).toMatchObject({ sub: "alice" });
	});
});

describe("the claims of RFC 9449 section 4.2", () => {
	const other = "x".repeat(43);
	const wrong: readonly (readonly [claim: string, reason: string, ...values: unknown[]])[] = [
		["jti", "jti is missing or not a string", undefined, null, "", 1, ["1"]],
		["htm", "htm is not the method of the request", undefined, null, "", "post", "GET", ["POST"], "POST "],
		[
			"htu",
			"htu is not the URL of the request",
			...[
				undefined,
				null,
				"",
				1,
				[RESOURCE],
				"/mcp",
				"rs.example/mcp",
				RESOURCE,
				`${RESOURCE}/mcp/`,
				`${RESOURCE}/MCP`,
			],
			...["http://rs.example/mcp", "https://rs.example:8443/mcp", "https://evil.example/mcp"],
			...["https://u@rs.example/mcp", "https://rs.example.evil/mcp", "https://rs.example//mcp"],
		],
		["ath", "ath is not the hash of the access token", undefined, null, "", 1, other, `${other}=`],
		["iat", "iat is missing or not a number", undefined, null, "", "1796000000", [1], true],
		["nbf", "nbf is not a number", null, "1"],
		["nbf", "nbf is in the future", 9_999_999_999],
		["exp", "exp is past", 1, null, "9999999999"],
	];
	const cases = wrong.flatMap(([claim, reason, ...values]) =>
		values.map(
			(value) => [claim, value === undefined ? "absent" : JSON.stringify(value), value, reason] as const,
		),
	);

	it.each(cases)("%s %s is refused", async (claim, _, value, reason) => {
		const proof = await prove(holder, token, { [claim]: value });
		const error = await refusal(verify(token, presentedWith(proof)));
		expect(error).toMatchObject({ ...invalid(reason), cause: { message: reason } });
	});

	it("an ath in hex, and one of another token", async () => {
		const hex = Buffer.from(String(proofClaims(token).ath), "base64url").toString("hex");
		for (const ath of [hex, proofClaims(await sign(issuer, await boundTo(holder))).ath]) {
			const proof = await prove(holder, token, { ath });
			expect(await refusal(verify(token, presentedWith(proof)))).toMatchObject(
				invalid("ath is not the hash of the access token"),
			);
		}
	});
});

describe("the header of a proof", () => {
	it.each([
		undefined,
		null,
		"",
		1,
		"JWT",
		"at+jwt",
		"dpop",
		"dpop+jwt;v=1",
		"application/application/dpop+jwt",
	])("typ %j", async (typ) => {
		const proof = await prove(holder, token, {}, { typ });
		expect(await refusal(verify(token, presentedWith(proof)))).toMatchObject(invalid("typ is not dpop+jwt"));
	});

	it.each<[string, unknown]>([
		["absent", undefined],
		["null", null],
		["a string", "key"],
		["a list", []],
		["empty", {}],
		["a symmetric key", { kty: "oct" }],
		["of no kind that there is", { kty: "XYZ", x: "x" }],
		["a point that is not on its curve", { kty: "EC", crv: "P-256", x: "AAAA", y: "AAAA" }],
	])("jwk %s", async (_, jwk) => {
		const proof = await prove(holder, token, {}, { jwk });
		expect(await refusal(verify(token, presentedWith(proof)))).toMatchObject(
			invalid("jwk is not a key for alg"),
		);
	});

	it("jwk with its private part", async () => {
		for (const signer of [holder, rsa]) {
			const jwk = await exportJWK(signer.privateKey);
			const bound = await sign(issuer, await boundTo(signer));
			const proof = await prove(signer, bound, {}, { jwk });
			expect(await refusal(verify(bound, presentedWith(proof)))).toMatchObject(
				invalid("jwk has a private part"),
			);
		}
	});

	it.each(["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"])(
		"jwk with a private %s alone",
		async (member) => {
			const proof = await prove(holder, token, {}, { jwk: { ...holder.jwk, [member]: "AAAA" } });
			expect(await refusal(verify(token, presentedWith(proof)))).toMatchObject(
				invalid("jwk has a private part"),
			);
		},
	);

	it.each<[string, Record<string, unknown>]>([
		["for encryption", { use: "enc" }],
		["for another algorithm", { alg: "ES384" }],
		["for signing only", { key_ops: ["sign"] }],
	])("jwk %s", async (_, members) => {
		const proof = await prove(holder, token, {}, { jwk: { ...holder.jwk, ...members } });
		expect(await refusal(verify(token, presentedWith(proof)))).toMatchObject(
			invalid("jwk is not a key for alg"),
		);
	});

	it("jwk of the holder over a signature of somebody else", async () => {
		const proof = await prove(thief, token, {}, { jwk: holder.jwk });
		expect(await refusal(verify(token, presentedWith(proof)))).toMatchObject(
			invalid("signature verification failed"),
		);
	});

	it.each(["none", "None", ""])("alg %j", async (alg) => {
		const input = `${encode({ alg, typ: "dpop+jwt", jwk: holder.jwk })}.${encode(proofClaims(token))}`;
		for (const proof of [`${input}.`, `${input}.AAAA`]) {
			expect(await refusal(verify(token, presentedWith(proof)))).toMatchObject({
				code: "dpop_proof_invalid",
			});
		}
	});

	it("HS256 with the public key as secret", async () => {
		const bound = await sign(issuer, await boundTo(rsa));
		for (const secret of [await exportSPKI(rsa.publicKey), JSON.stringify(rsa.jwk), rsa.jwk.n ?? ""]) {
			for (const jwk of [rsa.jwk, { kty: "oct", k: base64url.encode(secret) }]) {
				const input = `${encode({ alg: "HS256", typ: "dpop+jwt", jwk })}.${encode(proofClaims(bound))}`;
				const proof = `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
				expect(await refusal(verify(bound, presentedWith(proof)))).toMatchObject({
					code: "dpop_proof_invalid",
				});
			}
		}
	});

	it("a critical extension", async () => {
		const header = encode({ alg: "ES256", typ: "dpop+jwt", jwk: holder.jwk, crit: ["x"], x: 1 });
		const input = `${header}.${encode(proofClaims(token))}`;
		const algorithm = { name: "ECDSA", hash: "SHA-256" };
		const bytes = new TextEncoder().encode(input);
		const signature = new Uint8Array(await crypto.subtle.sign(algorithm, holder.privateKey, bytes));
		const proof = `${input}.${base64url.encode(signature)}`;
		expect(await refusal(verify(token, presentedWith(proof)))).toMatchObject(
			invalid("a critical header extension"),
		);
	});
});

describe("the DPoP header", () => {
	it.each<[string, string | readonly string[] | undefined, string]>([
		["is not there", undefined, "not exactly one DPoP header"],
		["has no value", [], "not exactly one DPoP header"],
		["is there twice", ["a.b.c", "a.b.c"], "not exactly one DPoP header"],
		["is empty", "", "no compact JWS"],
		["is no JWT", "proof", "no compact JWS"],
		["is longer than 16 KiB", `${"a".repeat(16_384)}.b.c`, "no compact JWS"],
		["has a header that is not JSON", "YQ.YQ.YQ", "the header is not JSON"],
	])("%s", async (_, header, reason) => {
		expect(await refusal(verify(token, presentedWith(header)))).toMatchObject(invalid(reason));
	});

	it("has two good proofs, as a list or joined", async () => {
		const proofs = [await prove(holder, token), await prove(holder, token)];
		for (const header of [proofs, proofs.join(", "), proofs.join(",")]) {
			expect(await refusal(verify(token, presentedWith(header)))).toMatchObject({
				code: "dpop_proof_invalid",
			});
		}
	});

	it("has the access token in place of a proof", async () => {
		expect(await refusal(verify(token, presentedWith(token)))).toMatchObject(invalid("typ is not dpop+jwt"));
	});

	it("has a proof whose claims are no claims set", async () => {
		const [header] = (await prove(holder, token)).split(".");
		const input = `${header}.${encode(["jti"])}`;
		const algorithm = { name: "ECDSA", hash: "SHA-256" };
		const bytes = new TextEncoder().encode(input);
		const signature = new Uint8Array(await crypto.subtle.sign(algorithm, holder.privateKey, bytes));
		expect(
			await refusal(verify(token, presentedWith(`${input}.${base64url.encode(signature)}`))),
		).toMatchObject(invalid("the payload is not a JWT claims set"));
	});
});

describe("a token and how it is presented", () => {
	type Holder = "nobody" | "holder" | "thief";

	it.each<[string, TokenRequest["scheme"], bound: boolean, proof: Holder, code: string | undefined]>([
		["bound, with its proof", "DPoP", true, "holder", undefined],
		["bound, with somebody else's proof", "DPoP", true, "thief", "token_invalid"],
		["bound, without a proof", "DPoP", true, "nobody", "dpop_proof_invalid"],
		["bound, as Bearer", "Bearer", true, "nobody", "token_invalid"],
		["bound, as Bearer with its proof", "Bearer", true, "holder", "token_invalid"],
		["bound, in a scheme that is not said", undefined, true, "holder", "token_invalid"],
		["for everyone, as Bearer", "Bearer", false, "nobody", undefined],
		["for everyone, in a scheme that is not said", undefined, false, "nobody", undefined],
		["for everyone, as Bearer beside a proof", "Bearer", false, "holder", undefined],
		["for everyone, as DPoP with a proof", "DPoP", false, "holder", "token_invalid"],
		["for everyone, as DPoP without a proof", "DPoP", false, "nobody", "token_invalid"],
	])("%s", async (_, scheme, bound, by, code) => {
		const presented = bound ? token : await sign(issuer);
		const signer = { nobody: undefined, holder, thief }[by];
		const headers = signer === undefined ? {} : { dpop: await prove(signer, presented) };
		const request = { ...REQUEST, headers, ...(scheme && { scheme }) };
		const verification = verify(presented, request);
		if (code === undefined) expect(await verification).toMatchObject({ sub: "alice" });
		else expect(await refusal(verification)).toMatchObject({ code });
	});

	it.each<[string, (jkt: string) => unknown]>([
		["another method beside jkt", (jkt) => ({ jkt, kid: "1" })],
		["jwk", () => ({ jwk: holder.jwk })],
		["jwe", () => ({ jwe: "x" })],
		["jku", () => ({ jku: "https://as.example/jwks" })],
		["kid", () => ({ kid: "holder" })],
		["none", () => ({})],
		["a list", (jkt) => [jkt]],
		["a string", (jkt) => jkt],
		["null", () => null],
		["a jkt that is null", () => ({ jkt: null })],
		["a jkt that is empty", () => ({ jkt: "" })],
		["a jkt that is a list", (jkt) => ({ jkt: [jkt] })],
		["a jkt with padding", (jkt) => ({ jkt: `${jkt}=` })],
		["the name that every object has", (jkt) => JSON.parse(`{"__proto__":{"jkt":"${jkt}"}}`)],
	])("a confirmation of %s is refused", async (_, cnf) => {
		const { jkt } = (await boundTo(holder)).cnf;
		const presented = await sign(issuer, { cnf: cnf(jkt) });
		const request = presentedWith(await prove(holder, presented));
		expect(await refusal(verify(presented, request))).toMatchObject({
			...OPAQUE,
			cause: { message: expect.stringMatching(/^cnf /) },
		});
	});

	it("that has expired is told so only to its holder", async () => {
		const expired = await sign(issuer, { ...(await boundTo(holder)), exp: 1 });
		const mine = await prove(holder, expired);
		expect(await refusal(verify(expired, presentedWith(mine)))).toMatchObject({ code: "token_expired" });
		const theirs = await prove(thief, expired);
		expect(await refusal(verify(expired, presentedWith(theirs)))).toMatchObject(OPAQUE);
	});

	it("is looked at before the proof", async () => {
		const forged = await sign(thief, await boundTo(holder));
		const proof = await prove(holder, forged);
		expect(await refusal(verify(forged, presentedWith(proof)))).toMatchObject(OPAQUE);
	});
});

describe("a proof that was used", () => {
	it("is not good again", async () => {
		const request = presentedWith(await prove(holder, token));
		await verify(token, request);
		expect(await refusal(verify(token, request))).toMatchObject(invalid("it was used before"));
	});

	it("is good for one of several at once", async () => {
		const request = presentedWith(await prove(holder, token));
		const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => verify(token, request)));
		expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
	});

	it("shares its jti with no other proof of that key, but with those of other keys", async () => {
		const other = await sign(issuer, await boundTo(thief));
		await verify(token, presentedWith(await prove(holder, token, { jti: "1" })));
		const again = presentedWith(await prove(holder, token, { jti: "1" }));
		expect(await refusal(verify(token, again))).toMatchObject(invalid("it was used before"));
		expect(await verify(other, presentedWith(await prove(thief, other, { jti: "1" })))).toMatchObject({
			sub: "alice",
		});
	});

	it("that was not good is not used up", async () => {
		const proof = await prove(holder, token);
		const elsewhere = presentedWith(proof, { url: `${RESOURCE}/other` });
		expect(await refusal(verify(token, elsewhere))).toMatchObject({ code: "dpop_proof_invalid" });
		expect(await verify(token, presentedWith(proof))).toMatchObject({ sub: "alice" });
	});
});

describe("the clock", () => {
	const now = 1_796_000_000;

	async function at(time: number, iat: number, use: TokenVerifier): Promise<string> {
		const presented = await sign(issuer, { ...(await boundTo(holder)), iat: 1, exp: now * 2 });
		const proof = await prove(holder, presented, { iat });
		vi.useFakeTimers({ toFake: ["Date"], now: time * 1000 });
		try {
			return await use(presented, presentedWith(proof)).then(
				() => "good",
				(error) => error.message,
			);
		} finally {
			vi.useRealTimers();
		}
	}

	const old = invalid("iat is too long ago").message;
	const early = invalid("iat is in the future").message;

	it.each([
		["now", 0, 30, "good"],
		["a minute and the skew ago", -90, 30, "good"],
		["longer ago", -91, 30, old],
		["ahead by the skew", 30, 30, "good"],
		["further ahead", 31, 30, early],
		["a minute ago, without skew", -60, 0, "good"],
		["longer ago, without skew", -60.5, 0, old],
		["ahead, without skew", 0.5, 0, early],
		["never", Number.MIN_SAFE_INTEGER, 30, old],
	])("made %s: %s seconds, skew %s: %s", async (_, ago, clock_skew, outcome) => {
		expect(await at(now, now + ago, verifier(undefined, { ...DATA, clock_skew }))).toBe(outcome);
	});

	it("has the skew of thirty seconds where data names none", async () => {
		expect(await at(now, now - 90, verify)).toBe("good");
		expect(await at(now, now - 91, verify)).toBe(old);
	});

	it("lets no proof be good again, in the last moment that it is good in", async () => {
		const presented = await sign(issuer, { ...(await boundTo(holder)), iat: 1, exp: now * 2 });
		const request = presentedWith(await prove(holder, presented, { iat: now }));
		vi.useFakeTimers({ toFake: ["Date"], now: (now - 30) * 1000 });
		try {
			const patient = verifier();
			expect(await patient(presented, request)).toMatchObject({ sub: "alice" });
			vi.setSystemTime((now + 90) * 1000);
			expect(await refusal(patient(presented, request))).toMatchObject(invalid("it was used before"));
			vi.setSystemTime((now + 90) * 1000 + 1);
			expect(await refusal(patient(presented, request))).toMatchObject(invalid("iat is too long ago"));
		} finally {
			vi.useRealTimers();
		}
	});
});

describe("the URL behind a proxy", () => {
	const data = { resources: ["mcp://srv", RESOURCE] };

	it.each<[string, DpopOptions | undefined, string, string, boolean]>([
		[
			"the resource's origin, whatever the Host is",
			undefined,
			"http://10.0.0.7:3000/mcp",
			"https://rs.example/mcp",
			true,
		],
		["not that of the request", undefined, "https://evil.example/mcp", "https://evil.example/mcp", false],
		["a path without a host", undefined, "/mcp?sessionId=1", "https://rs.example/mcp", true],
		["another path", undefined, "/messages", "https://rs.example/mcp", false],
		["the base that is given", { baseUrl: "https://api.example" }, "/mcp", "https://api.example/mcp", true],
		["and no other", { baseUrl: "https://api.example" }, "/mcp", "https://rs.example/mcp", false],
		[
			"a path that is taken away",
			{ baseUrl: "https://api.example/srv" },
			"/mcp",
			"https://api.example/srv/mcp",
			true,
		],
		["only with that path", { baseUrl: "https://api.example/srv" }, "/mcp", "https://api.example/mcp", false],
	])("%s", async (_, dpop, url, htu, good) => {
		const request = presentedWith(await prove(holder, token, { htu }), { url });
		const verification = verifier(dpop, data)(token, request);
		if (good) expect(await verification).toMatchObject({ sub: "alice" });
		else expect(await refusal(verification)).toMatchObject(invalid("htu is not the URL of the request"));
	});

	it("is not guessed where no resource is one", async () => {
		const presented = await sign(issuer, { ...(await boundTo(holder)), aud: "mcp://srv" });
		const request = presentedWith(await prove(holder, presented));
		expect(
			await refusal(verifier(undefined, { resources: ["mcp://srv"] })(presented, request)),
		).toMatchObject(invalid("there is no URL to compare htu with: set dpop.baseUrl"));
	});

	it.each(["rs.example", "ftp://rs.example", "https://rs.example?x"])(
		"options with the base %s",
		(baseUrl) => {
			expect(() => verifier({ baseUrl })).toThrow(TypeError);
		},
	);
});

describe("nonces, where they are asked for", () => {
	const nonceSecret = new Uint8Array(32).fill(7);
	const required = { code: "dpop_nonce_required", dpopNonce: expect.stringMatching(/^[\w-]{43}$/) };

	it("come with the refusal, and are good on other machines with that secret", async () => {
		const [one, two] = [verifier({ nonceSecret }), verifier({ nonceSecret })];
		const error = await refusal(one(token, presentedWith(await prove(holder, token))));
		expect(error).toMatchObject(required);
		const nonce = error.dpopNonce;
		for (const use of [one, two]) {
			expect(await use(token, presentedWith(await prove(holder, token, { nonce })))).toMatchObject({
				sub: "alice",
			});
		}
	});

	it.each<[string, unknown]>([
		["another", "x".repeat(43)],
		["empty", ""],
		["null", null],
		["a number", 1],
	])("are refused: %s", async (_, nonce) => {
		const request = presentedWith(await prove(holder, token, { nonce }));
		expect(await refusal(verifier({ nonceSecret })(token, request))).toMatchObject(required);
	});

	it("are not given for a proof that is not good", async () => {
		const request = presentedWith(await prove(holder, token, { htm: "GET" }));
		expect(await refusal(verifier({ nonceSecret })(token, request))).toMatchObject({
			code: "dpop_proof_invalid",
		});
	});

	it("do not matter to Bearer tokens", async () => {
		expect(await verifier({ nonceSecret })(await sign(issuer), REQUEST)).toMatchObject({ sub: "alice" });
	});

	it("need a secret of 32 bytes", () => {
		expect(() => verifier({ nonceSecret: new Uint8Array(31) })).toThrow(TypeError);
	});
});

describe("what errors say", () => {
	it("has nothing of the token or the proof", async () => {
		const secrets = { jti: "secret-jti", nonce: "secret-nonce" };
		const proofs = [
			await prove(holder, token, { ...secrets, htu: "https://secret.example/" }),
			await prove(holder, token, { ...secrets, htm: "secret" }),
			await prove(holder, token, { ...secrets, iat: 1 }),
			await prove(holder, token, secrets, { typ: "secret" }),
			await prove(holder, token, secrets, { jwk: { kty: "secret", crv: "secret" } }),
			await prove(holder, token, secrets, { jwk: { ...holder.jwk, key_ops: ["secret"] } }),
			await prove(thief, token, secrets, { jwk: holder.jwk }),
			await prove(thief, token, secrets),
			"secret",
		];
		for (const proof of proofs) {
			const error = await refusal(verify(token, presentedWith(proof)));
			const text = inspect(error, { depth: 10, showHidden: true });
			expect(text.replaceAll(import.meta.filename, "")).not.toMatch(/secret/);
			for (const part of [...token.split("."), ...(proof.includes(".") ? proof.split(".") : [])]) {
				expect(text).not.toContain(part);
			}
		}
	});
});
