import { randomUUID } from "node:crypto";
import { exportJWK, generateKeyPair, type JSONWebKeySet, SignJWT } from "jose";
import type { PolicyData } from "../../src/generated/types.ts";

export const ISSUER = "https://as.example";
const SERVER = "https://mcp.example.com";

const { publicKey, privateKey } = await generateKeyPair("ES256");

export const jwks: JSONWebKeySet = { keys: [{ ...(await exportJWK(publicKey)), kid: "1", alg: "ES256" }] };

const tool = (name: string) => ({ aud: [`${SERVER}/tools/${name}`], scope: [] });

/** Two tools, each with an audience of its own, and one audience for both. No clock skew, so that `exp` is meant. */
export const data: PolicyData = {
	resources: [SERVER],
	tools: { search: tool("search"), fetch: tool("fetch") },
	coverage: { [SERVER]: [`${SERVER}/tools/*`] },
	clock_skew: 0,
};

/** What tokens of tests are for. */
export const audiences = {
	/** Both tools. */
	wide: [SERVER],
	/** `search` only. */
	narrow: [`${SERVER}/tools/search`],
} as const;

export interface MintOptions {
	readonly sub?: string;
	/** Seconds from now; less than 0: it has expired. Default: ten minutes. */
	readonly expiresIn?: number;
}

/** An access token of a user of the host, as RFC 9068 has it. */
export async function mint(
	audience: keyof typeof audiences,
	{ sub = "alice", expiresIn = 600 }: MintOptions = {},
): Promise<string> {
	const now = Date.now() / 1000;
	return new SignJWT({
		iss: ISSUER,
		sub,
		client_id: "app",
		aud: [...audiences[audience]],
		iat: Math.floor(now) - 1,
		exp: now + expiresIn,
		jti: randomUUID(),
	})
		.setProtectedHeader({ alg: "ES256", kid: "1", typ: "at+jwt" })
		.sign(privateKey);
}
