import type { JWSHeaderParameters } from "jose";
import { isNumericDate, isText, mediaType, type TokenClaims } from "./jwt.ts";

/**
 * What an issuer does less than RFC 9068 asks; everything else stays required. Prefer an issuer that can be
 * configured to follow RFC 9068: its `typ` is what keeps other tokens of the same issuer from passing as access
 * tokens.
 */
export interface TokenDeviations {
	/**
	 * Accept a `typ` header that is absent or `JWT`. An ID token looks like that too. It is refused because its
	 * `aud` is the client, not a resource of this server; and, where an issuer uses one name for both, if it has a
	 * claim that only ID tokens, logout tokens and the like have (`nonce`, `at_hash`, `c_hash`, `s_hash`, `events`;
	 * `token_use` other than `access`; a claim `typ` other than `Bearer`). An ID token for an audience of this
	 * server, and without such a claim, cannot be told from an access token: do not list as a resource what is also
	 * a client id.
	 */
	readonly untyped?: boolean;
	/** Accept `azp` in place of `client_id`. */
	readonly azp?: boolean;
	/** Claims that may be absent. Without `client_id`, sessions are not bound to a client. */
	readonly absent?: readonly ("client_id" | "iat" | "jti")[];
}

export interface TokenRules {
	readonly issuer: string;
	readonly allow: TokenDeviations;
	/** Seconds. */
	readonly skew: number;
	readonly own: (audience: string) => boolean;
}

const FOREIGN_CLAIMS = ["nonce", "at_hash", "c_hash", "s_hash", "events"];

/** Why this header is not that of an access token; `undefined`: it may be one. */
export function headerFault(header: JWSHeaderParameters, allow: TokenDeviations): string | undefined {
	const typ = mediaType(header.typ);
	const untyped = header.typ === undefined || typ === "jwt";
	// RFC 9068 section 4: any other `typ` is refused.
	if (typ !== "at+jwt" && !(allow.untyped && untyped)) return "typ is not at+jwt";
	return undefined;
}

/** On or after `exp` a token must not be accepted (RFC 7519 section 4.1.4). */
export function isExpired(exp: unknown, skew: number, now: number): boolean {
	return !isNumericDate(exp) || exp + skew <= now;
}

/** Why these claims are of a time to come; `undefined`: they are not. */
export function earliness({ iat, nbf }: TokenClaims, skew: number, now: number): string | undefined {
	if (isNumericDate(iat) && iat > now + skew) return "iat is in the future";
	if (nbf !== undefined && !isNumericDate(nbf)) return "nbf is not a number";
	if (isNumericDate(nbf) && nbf > now + skew) return "nbf is in the future";
	return undefined;
}

function audiences(aud: unknown): string[] {
	const values: unknown[] = Array.isArray(aud) ? aud : [aud];
	return values.every(isText) ? values : [];
}

function clientFault(claims: TokenClaims, allow: TokenDeviations): string | undefined {
	const { client_id, azp } = claims;
	if (client_id !== undefined && !isText(client_id)) return "client_id is not a string";
	if (azp !== undefined && !isText(azp)) return "azp is not a string";
	const named = client_id !== undefined || (allow.azp && azp !== undefined);
	return named || allow.absent?.includes("client_id") ? undefined : "client_id is missing";
}

/** Claims that say that this is some other token of the same issuer. */
function isForeign(claims: TokenClaims): boolean {
	if (FOREIGN_CLAIMS.some((claim) => Object.hasOwn(claims, claim))) return true;
	// Amazon Cognito and Keycloak name the kind of token in a claim.
	const { token_use, typ } = claims;
	return (token_use !== undefined && token_use !== "access") || (typ !== undefined && typ !== "Bearer");
}

/** Why these are not the claims of an access token for this server, expired or not; `undefined`: they are. */
export function claimsFault(
	header: JWSHeaderParameters,
	claims: TokenClaims,
	{ issuer, allow, skew, own }: TokenRules,
	now: number,
): string | undefined {
	const { iss, sub, exp, iat, jti } = claims;
	if (iss !== issuer) return "iss is not the issuer";
	if (!isText(sub)) return "sub is missing or not a string";
	if (!isNumericDate(exp)) return "exp is missing or not a number";
	if (!audiences(claims.aud).some(own)) return "aud has no resource of this server";
	if (jti === undefined ? !allow.absent?.includes("jti") : !isText(jti))
		return "jti is missing or not a string";
	if (iat === undefined ? !allow.absent?.includes("iat") : !isNumericDate(iat)) {
		return "iat is missing or not a number";
	}
	const early = earliness(claims, skew, now);
	if (early !== undefined) return early;
	if (mediaType(header.typ) !== "at+jwt" && isForeign(claims)) return "not an access token";
	return clientFault(claims, allow);
}
