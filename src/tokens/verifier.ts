import { compactVerify, decodeProtectedHeader, type JSONWebKeySet } from "jose";
import { ResumeGuardError } from "../errors.ts";
import type { PolicyData } from "../generated/types.ts";
import { ownResources } from "../resources.ts";
import { claimsFault, headerFault, isExpired, type TokenDeviations } from "./claims.ts";
import { createKeySource } from "./keys.ts";

/**
 * The request that a token came with. The built-in verifier does not look at it; a verifier of your own may need it,
 * to check a DPoP proof (RFC 9449: method, URL and the `DPoP` header) or a client certificate.
 */
export interface TokenRequest {
	readonly method: string;
	/** As the client sees it, absolute where the host knows its own origin. */
	readonly url: string;
	/** Names in lower case, as Node has them; from fetch, `Object.fromEntries(request.headers)`. */
	readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Verified claims, as they are in the token. */
export type TokenClaims = Readonly<Record<string, unknown>>;

/**
 * Verifies an access token: a signature here, or by asking the authorization server (RFC 7662). Whoever answers
 * with a `cnf` claim has verified possession of that key.
 *
 * Resolves with the claims. Rejects with a `ResumeGuardError`: `token_invalid`, `token_expired` or
 * `token_keys_unavailable`.
 */
export type TokenVerifier = (token: string, request: TokenRequest) => Promise<TokenClaims>;

export interface TokenVerifierOptions {
	/** The `iss` of good tokens, character for character. */
	readonly issuer: string;
	/**
	 * The issuer's public keys, or where they are (https, or a loopback host). Without it they are where the issuer's
	 * metadata says (RFC 8414, OpenID Connect Discovery). Keys are found by `kid`; a token without one is verified
	 * only if a single key fits its `alg`.
	 */
	readonly jwks?: string | URL | JSONWebKeySet;
	/** JWS algorithms to accept, asymmetric ones; default: the RS, PS and ES families, EdDSA and Ed25519. */
	readonly algorithms?: readonly string[];
	/** What the issuer does less than RFC 9068 asks. */
	readonly allow?: TokenDeviations;
}

const ASYMMETRIC = [256, 384, 512]
	.flatMap((bits) => [`RS${bits}`, `PS${bits}`, `ES${bits}`])
	.concat("EdDSA", "Ed25519");

const DEFAULT_SKEW = 30;
const MAX_LENGTH = 16_384;
/** A JWS in compact serialization (RFC 7515 section 7.1). */
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Bytes that are no UTF-8 would become U+FFFD, and two subjects one. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** NumericDate, seconds. */
function now(): number {
	return Date.now() / 1000;
}

function check(fault: string | undefined): void {
	if (fault !== undefined) throw new Error(fault);
}

function isWellFormed(value: unknown): boolean {
	if (typeof value === "string") return !LONE_SURROGATE.test(value);
	if (typeof value !== "object" || value === null) return true;
	return Object.entries(value).every(([key, member]) => isWellFormed(key) && isWellFormed(member));
}

/** Without the cause: a SyntaxError quotes what it could not parse. */
function parsed<T>(parse: () => T, fault: string): T {
	try {
		return parse();
	} catch {
		throw new Error(fault);
	}
}

function parseClaims(payload: Uint8Array): TokenClaims {
	const claims: unknown = parsed(() => JSON.parse(utf8.decode(payload)), "the payload is not JSON");
	if (typeof claims !== "object" || claims === null || Array.isArray(claims)) {
		throw new Error("the payload is not a JWT claims set");
	}
	if (!isWellFormed(claims)) throw new Error("a lone surrogate in a claim");
	return claims as TokenClaims;
}

/**
 * A verifier of JWT access tokens as RFC 9068 has them: `typ` `at+jwt`; an asymmetric signature of the issuer;
 * `iss`, `exp`, `aud`, `sub`, `client_id`, `iat` and `jti`; an `aud` that has a resource of this server
 * (`data`, see `ownResources`); `exp`, `nbf` and `iat` within `data.clock_skew`. A token with `cnf` is refused: this
 * verifier verifies no proof of possession. No header of the token (`jku`, `jwk`, `x5u`) chooses the key.
 *
 * Errors say what to do, not what was in the token: their `cause` has the reason, in fixed words too.
 *
 * @throws TypeError for wrong options.
 */
export function createTokenVerifier(options: TokenVerifierOptions, data: PolicyData): TokenVerifier {
	const { issuer, allow = {} } = options;
	const algorithms = [...(options.algorithms ?? ASYMMETRIC)];
	if (typeof issuer !== "string" || issuer === "") throw new TypeError("issuer is a non-empty string");
	if (algorithms.length === 0 || !algorithms.every((name) => ASYMMETRIC.includes(name))) {
		throw new TypeError(`algorithms is a non-empty list out of ${ASYMMETRIC.join(", ")}`);
	}
	const keys = createKeySource(issuer, options.jwks);
	const rules = { issuer, allow, skew: data.clock_skew ?? DEFAULT_SKEW, own: ownResources(data) };

	async function verify(token: string): Promise<TokenClaims> {
		if (typeof token !== "string" || token.length > MAX_LENGTH || !COMPACT.test(token)) {
			throw new Error("no compact JWS");
		}
		// Before the signature, so that no keys are fetched for what can be no access token.
		const header = parsed(() => decodeProtectedHeader(token), "the header is not JSON");
		check(headerFault(header, allow));
		const { payload } = await compactVerify(token, keys, { algorithms });
		const claims = parseClaims(payload);
		check(claimsFault(header, claims, rules, now()));
		return claims;
	}

	return async (token) => {
		let claims: TokenClaims;
		try {
			claims = await verify(token);
		} catch (cause) {
			if (cause instanceof ResumeGuardError) throw cause;
			throw new ResumeGuardError("token_invalid", "The access token is not valid", { cause });
		}
		if (isExpired(claims.exp, rules.skew, now())) {
			throw new ResumeGuardError("token_expired", "The access token has expired");
		}
		return claims;
	};
}
