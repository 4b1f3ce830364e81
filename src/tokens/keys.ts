import {
	createLocalJWKSet,
	createRemoteJWKSet,
	customFetch,
	errors,
	type FetchImplementation,
	type JSONWebKeySet,
} from "jose";
import { ResumeGuardError } from "../errors.ts";
import type { FindKey } from "./jwt.ts";

const RETRY_AFTER_MS = 5_000;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Whoever can change keys on their way here can make tokens: https, or a host that no network is in between of. */
function secureUrl(value: string | URL): URL {
	const url = new URL(value);
	if (url.protocol !== "https:" && !(url.protocol === "http:" && LOOPBACK.test(url.hostname))) {
		throw new TypeError("keys and issuer metadata are fetched over https, or from a loopback host");
	}
	return url;
}

/** RFC 8414 section 3.1 and OpenID Connect Discovery 1.0 section 4, in MCP's order (2025-11-25, authorization). */
function metadataUrls(issuer: URL): Set<string> {
	const path = issuer.pathname.replace(/\/$/, "");
	return new Set([
		`${issuer.origin}/.well-known/oauth-authorization-server${path}`,
		`${issuer.origin}/.well-known/openid-configuration${path}`,
		`${issuer.origin}${path}/.well-known/openid-configuration`,
	]);
}

async function getJson(url: string, init: Parameters<FetchImplementation>[1]): Promise<unknown> {
	const response = await fetch(url, init);
	if (response.status !== 200) {
		await response.body?.cancel();
		throw new Error(`status ${response.status} in place of 200`);
	}
	return response.json();
}

/** The metadata's `issuer` is the one that was asked for (RFC 8414 section 3.3), or it says nothing about it. */
function keysLocation(metadata: unknown, issuer: string): string {
	const { issuer: named, jwks_uri } = Object(metadata) as { issuer?: unknown; jwks_uri?: unknown };
	if (named !== issuer) throw new Error("the metadata is of another issuer");
	if (typeof jwks_uri !== "string") throw new Error("the metadata has no jwks_uri");
	return secureUrl(jwks_uri).href;
}

async function discover(issuer: string, init: Parameters<FetchImplementation>[1]): Promise<string> {
	const failures: unknown[] = [];
	for (const url of metadataUrls(new URL(issuer))) {
		try {
			return keysLocation(await getJson(url, init), issuer);
		} catch (failure) {
			failures.push(failure);
		}
	}
	throw new AggregateError(failures, "no metadata of the issuer");
}

/**
 * jose waits between fetches that went well. After one that failed it would try again for each token, so an
 * outage of the issuer would be answered with a fetch for each request.
 */
function withRetryDelay(
	getKeys: (...args: Parameters<FetchImplementation>) => Promise<unknown>,
): FetchImplementation {
	let failed: { readonly cause: unknown; readonly until: number } | undefined;
	return async (url, init) => {
		if (failed && performance.now() < failed.until) throw failed.cause;
		try {
			const keys = await getKeys(url, init);
			createLocalJWKSet(keys as JSONWebKeySet); // throws if it is none
			failed = undefined;
			return Response.json(keys);
		} catch (cause) {
			failed = { cause, until: performance.now() + RETRY_AFTER_MS };
			throw cause;
		}
	};
}

function remoteKeys(issuer: string, jwks: string | URL | undefined): FindKey {
	if (jwks !== undefined) {
		return createRemoteJWKSet(secureUrl(jwks), { [customFetch]: withRetryDelay(getJson) });
	}
	return createRemoteJWKSet(secureUrl(issuer), {
		[customFetch]: withRetryDelay(async (_issuer, init) => getJson(await discover(issuer, init), init)),
	});
}

function localKeys(jwks: JSONWebKeySet): FindKey {
	try {
		return createLocalJWKSet(jwks);
	} catch (cause) {
		throw new TypeError("jwks is not a JWK Set", { cause });
	}
}

/**
 * Where the keys of an issuer come from: a JWK Set (RFC 7517 section 5), its URL, or, without either, the issuer's
 * metadata. Fetched with the first token, kept for 10 minutes, and fetched again for a `kid` that is not known,
 * at most every 30 seconds; 5 seconds at most, and not again for 5 seconds after a failure.
 *
 * Rejects with `token_keys_unavailable` when the keys cannot be had, and with jose's error when there is not
 * exactly one key for the token.
 */
export function createKeySource(issuer: string, jwks: string | URL | JSONWebKeySet | undefined): FindKey {
	const keys =
		typeof jwks === "object" && !(jwks instanceof URL) ? localKeys(jwks) : remoteKeys(issuer, jwks);
	return async (header) => {
		try {
			return await keys(header);
		} catch (cause) {
			if (cause instanceof errors.JWKSNoMatchingKey || cause instanceof errors.JWKSMultipleMatchingKeys) {
				throw cause;
			}
			throw new ResumeGuardError(
				"token_keys_unavailable",
				"The keys to verify access tokens with are not available",
				{ cause },
			);
		}
	};
}
