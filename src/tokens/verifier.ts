import type { JSONWebKeySet } from "jose";
import { z } from "zod";
import { ResumeGuardError } from "../errors.ts";
import type { PolicyData } from "../generated/types.ts";
import { assertOptions } from "../misuse.ts";
import { ownResources } from "../resources.ts";
import { claimsFault, headerFault, isExpired, type TokenDeviations } from "./claims.ts";
import type { DpopOptions } from "./dpop.ts";
import { ASYMMETRIC, check, now, type TokenClaims } from "./jwt.ts";
import { createKeySource } from "./keys.ts";
import { createJwtMemory } from "./memory.ts";
import type { TokenRequest } from "./request.ts";
import { createSenderCheck } from "./sender.ts";

/**
 * Verifies an access token: a signature here, or by asking the authorization server (RFC 7662). Whoever answers
 * with a `cnf` claim has verified possession of that key, and a token that is bound to a DPoP key is refused in any
 * other scheme (RFC 9449 section 7.2).
 *
 * Resolves with the claims as they are in the token, frozen. Rejects with a `ResumeGuardError`: `token_invalid`,
 * `token_expired`, `token_keys_unavailable`, `dpop_proof_invalid` or `dpop_nonce_required`.
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
	/** How DPoP proofs are verified. They are, for tokens that are bound to a DPoP key, with and without options. */
	readonly dpop?: DpopOptions;
}

const DEFAULT_SKEW = 30;

const given = z.unknown().optional();
const known = z.strictObject({
	issuer: given,
	jwks: given,
	algorithms: given,
	allow: z
		.strictObject({
			untyped: z.boolean().optional(),
			azp: z.boolean().optional(),
			absent: z.array(z.enum(["client_id", "iat", "jti"])).optional(),
		})
		.optional(),
	dpop: z.strictObject({ baseUrl: given, nonceSecret: given }).optional(),
});

/**
 * A verifier of JWT access tokens as RFC 9068 has them: `typ` `at+jwt`; an asymmetric signature of the issuer;
 * `iss`, `exp`, `aud`, `sub`, `client_id`, `iat` and `jti`; an `aud` that has a resource of this server
 * (`data`, see `ownResources`); `exp`, `nbf` and `iat` within `data.clock_skew`. No header of the token (`jku`, `jwk`,
 * `x5u`) chooses the key.
 *
 * A token with `cnf` is good only with proof of possession: a DPoP proof of the key that `jkt` names (RFC 9449), a client
 * certificate that `x5t#S256` names (RFC 8705), or both. Any other confirmation method is refused.
 *
 * Errors say what to do, not what was in the token: their `cause` has the reason, in fixed words too.
 *
 * @param data or, if it may change, who says what it is now: keys and used proofs stay
 * @throws TypeError for wrong options.
 */
export function createTokenVerifier(
	options: TokenVerifierOptions,
	data: PolicyData | (() => PolicyData),
): TokenVerifier {
	assertOptions(known, options);
	const { issuer, allow = {} } = options;
	const algorithms = [...(options.algorithms ?? ASYMMETRIC)];
	if (typeof issuer !== "string" || issuer === "") throw new TypeError("issuer is a non-empty string");
	if (algorithms.length === 0 || !algorithms.every((name) => ASYMMETRIC.includes(name))) {
		throw new TypeError(`algorithms is a non-empty list out of ${ASYMMETRIC.join(", ")}`);
	}
	const key = createKeySource(issuer, options.jwks);
	const verifyJwt = createJwtMemory({ key, algorithms, headerFault: (header) => headerFault(header, allow) });
	const checkSender = createSenderCheck(options.dpop ?? {});
	const current = typeof data === "function" ? data : () => data;
	let rules = rulesOf(current());

	function rulesOf(from: PolicyData) {
		const { clock_skew: skew = DEFAULT_SKEW, resources } = from;
		return { from, issuer, allow, skew, resources, own: ownResources(from) };
	}

	async function verify(token: string, request: TokenRequest, by: typeof rules): Promise<TokenClaims> {
		const { header, claims } = await verifyJwt(token);
		check(claimsFault(header, claims, by, now()));
		await checkSender(token, claims, request, by);
		return claims;
	}

	return async (token, request) => {
		const from = current();
		if (from !== rules.from) rules = rulesOf(from);
		const by = rules;
		let claims: TokenClaims;
		try {
			claims = await verify(token, request, by);
		} catch (cause) {
			if (cause instanceof ResumeGuardError) throw cause;
			throw new ResumeGuardError("token_invalid", "The access token is not valid", { cause });
		}
		if (isExpired(claims.exp, by.skew, now())) {
			throw new ResumeGuardError("token_expired", "The access token has expired");
		}
		return claims;
	};
}
