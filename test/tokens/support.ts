import { createHash, randomUUID } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import {
	calculateJwkThumbprint,
	exportJWK,
	type GenerateKeyPairResult,
	generateKeyPair,
	type JWK,
	SignJWT,
} from "jose";
import type { ResumeGuardError } from "../../src/errors.ts";
import type { PolicyData } from "../../src/generated/types.ts";
import type { TokenClaims, TokenRequest } from "../../src/tokens/index.ts";

export const ISSUER = "https://as.example";
export const RESOURCE = "https://rs.example";
export const DATA: PolicyData = { resources: [RESOURCE] };
export const REQUEST: TokenRequest = { method: "POST", url: `${RESOURCE}/mcp`, headers: {} };

export interface Signer extends GenerateKeyPairResult {
	readonly alg: string;
	readonly jwk: JWK;
}

export async function createSigner(alg: string, kid: string): Promise<Signer> {
	const pair = await generateKeyPair(alg, { extractable: true });
	return { ...pair, alg, jwk: { ...(await exportJWK(pair.publicKey)), kid } };
}

/** The claims that RFC 9068 asks for, with changes; `undefined` takes a claim away. */
export function claims(changes: Record<string, unknown> = {}): Record<string, unknown> {
	const now = Math.floor(Date.now() / 1000);
	return present({
		iss: ISSUER,
		sub: "alice",
		aud: RESOURCE,
		client_id: "app",
		iat: now,
		exp: now + 600,
		jti: "1",
		...changes,
	});
}

function present(members: Record<string, unknown>): Record<string, unknown> {
	return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** An access token; header parameters of `undefined` are left out. */
export async function sign(
	signer: Signer,
	changes: Record<string, unknown> = {},
	header: Record<string, unknown> = {},
): Promise<string> {
	return new SignJWT(claims(changes))
		.setProtectedHeader({ alg: signer.alg, kid: signer.jwk.kid ?? "", typ: "at+jwt", ...header })
		.sign(signer.privateKey);
}

/** The claim that binds a token to a DPoP key (RFC 9449 section 6.1). */
export async function boundTo({ jwk }: Signer): Promise<{ cnf: { jkt: string } }> {
	return { cnf: { jkt: await calculateJwkThumbprint(jwk) } };
}

/** The claims of a DPoP proof for `REQUEST` (RFC 9449 section 4.2), with changes; `undefined` takes one away. */
export function proofClaims(token: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
	return present({
		jti: randomUUID(),
		htm: REQUEST.method,
		htu: REQUEST.url,
		iat: Math.floor(Date.now() / 1000),
		ath: createHash("sha256").update(token).digest("base64url"),
		...changes,
	});
}

/** A DPoP proof; header parameters and claims of `undefined` are left out. */
export async function prove(
	signer: Signer,
	token: string,
	changes: Record<string, unknown> = {},
	header: Record<string, unknown> = {},
): Promise<string> {
	return new SignJWT(proofClaims(token, changes))
		.setProtectedHeader({ alg: signer.alg, typ: "dpop+jwt", jwk: signer.jwk, ...header })
		.sign(signer.privateKey);
}

/** The error that a verification ends with. */
export async function refusal(verification: Promise<TokenClaims>): Promise<ResumeGuardError> {
	return verification.then(
		() => Promise.reject(new Error("verified")),
		(error) => error,
	);
}

export interface Loopback {
	readonly origin: string;
	/** Paths that were asked for, in order. */
	readonly asked: string[];
	close(): Promise<void>;
}

/** A real HTTP server on a loopback port. */
export async function listen(handler: RequestListener, port = 0): Promise<Loopback> {
	const asked: string[] = [];
	const server = createServer((request, response) => {
		asked.push(request.url ?? "");
		handler(request, response);
	});
	await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
	return {
		origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		asked,
		close: () =>
			new Promise((resolve) => {
				server.close(() => resolve());
				server.closeAllConnections();
			}),
	};
}
