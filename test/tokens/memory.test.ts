import { subtle } from "node:crypto";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { PolicyData } from "../../src/generated/types.ts";
import { createTokenVerifier } from "../../src/tokens/index.ts";
import { createJwtMemory } from "../../src/tokens/memory.ts";
import { createSigner, DATA, ISSUER, listen, REQUEST, refusal, type Signer, sign } from "./support.ts";

let signer: Signer;
let other: Signer;

beforeAll(async () => {
	[signer, other] = await Promise.all([createSigner("ES256", "1"), createSigner("ES256", "1")]);
});

afterEach(() => {
	vi.useRealTimers();
	vi.restoreAllMocks();
});

const verifierOf = (data: PolicyData | (() => PolicyData) = DATA) =>
	createTokenVerifier({ issuer: ISSUER, jwks: { keys: [signer.jwk] } }, data);

const rules = (key: () => Promise<Signer["publicKey"]>) =>
	createJwtMemory({ key, algorithms: ["ES256"], headerFault: () => undefined });

describe("a token that comes again", () => {
	it("has its signature verified once", async () => {
		const verified = vi.spyOn(subtle.constructor.prototype, "verify");
		const verify = verifierOf();
		const token = await sign(signer);
		const first = await verify(token, REQUEST);
		expect(await verify(token, REQUEST)).toEqual(first);
		expect(verified).toHaveBeenCalledTimes(1);
	});

	it("is refused once it has expired", async () => {
		vi.useFakeTimers({ toFake: ["Date"] });
		const verify = verifierOf();
		const token = await sign(signer);
		await verify(token, REQUEST);
		vi.setSystemTime(Date.now() + 631_000);
		expect(await refusal(verify(token, REQUEST))).toMatchObject({ code: "token_expired" });
	});

	it("is refused once its audience is no resource of this server", async () => {
		let data: PolicyData = DATA;
		const verify = verifierOf(() => data);
		const token = await sign(signer);
		await verify(token, REQUEST);
		data = { resources: ["https://elsewhere.example"] };
		expect(await refusal(verify(token, REQUEST))).toMatchObject({ code: "token_invalid" });
	});

	it("is refused once its key is withdrawn", async () => {
		vi.useFakeTimers({ toFake: ["Date", "performance"] });
		const keys = [signer.jwk];
		const server = await listen((_, response) =>
			response.setHeader("content-type", "application/json").end(JSON.stringify({ keys })),
		);
		const verify = createTokenVerifier({ issuer: ISSUER, jwks: `${server.origin}/jwks` }, DATA);
		const token = await sign(signer, { exp: Math.floor(Date.now() / 1000) + 3600 });
		await verify(token, REQUEST);
		keys.splice(0, 1, { ...other.jwk, kid: "2" });
		vi.advanceTimersByTime(601_000);
		expect(await refusal(verify(token, REQUEST))).toMatchObject({ code: "token_invalid" });
		await server.close();
	});

	it("is refused once its kid stands for another key", async () => {
		let key = signer.publicKey;
		const verify = rules(async () => key);
		const token = await sign(signer);
		await verify(token);
		key = other.publicKey;
		await expect(verify(token)).rejects.toThrow("signature verification failed");
		key = signer.publicKey;
		expect(await verify(token)).toMatchObject({ claims: { sub: "alice" } });
	});

	it("is refused while its key cannot be had", async () => {
		const keys = [signer.publicKey];
		const verify = rules(async () => {
			const key = keys.pop();
			if (key === undefined) throw new Error("no keys");
			return key;
		});
		const token = await sign(signer);
		await verify(token);
		await expect(verify(token)).rejects.toThrow("no keys");
	});

	it("has claims that nobody can change for the next request", async () => {
		const verify = verifierOf();
		const token = await sign(signer, { aud: [DATA.resources[0]], cnf: undefined, further: { deep: [1] } });
		const claims = (await verify(token, REQUEST)) as { aud: string[]; further: { deep: number[] } };
		expect(() => claims.aud.push("https://elsewhere.example")).toThrow(TypeError);
		expect(() => claims.further.deep.push(2)).toThrow(TypeError);
		expect(() => Object.assign(claims, { sub: "bob" })).toThrow(TypeError);
		expect(await verify(token, REQUEST)).toMatchObject({ sub: "alice", further: { deep: [1] } });
	});
});

describe("beside a token that is remembered", () => {
	it.each([
		[
			"another signature",
			(token: string) => `${token.slice(0, token.lastIndexOf(".") + 1)}${"A".repeat(86)}`,
		],
		["no signature", (token: string) => token.slice(0, token.lastIndexOf(".") + 1)],
		["the same token and a character", (token: string) => `${token}A`],
		["the same token and a space", (token: string) => `${token} `],
	])("%s is refused, each time", async (_, forge) => {
		const verify = verifierOf();
		const token = await sign(signer);
		await verify(token, REQUEST);
		for (const attempt of [1, 2]) {
			expect(await refusal(verify(forge(token), REQUEST)), String(attempt)).toMatchObject({
				code: "token_invalid",
			});
		}
		expect(await verify(token, REQUEST)).toMatchObject({ sub: "alice" });
	});

	it("more tokens than can be remembered are verified as well", async () => {
		const verify = verifierOf();
		const tokens = await Promise.all(
			Array.from({ length: 1_010 }, (_, index) => sign(signer, { jti: `${index}` })),
		);
		for (const token of [...tokens, ...tokens.slice(0, 5)]) {
			expect(await verify(token, REQUEST)).toMatchObject({ sub: "alice" });
		}
	});
});
