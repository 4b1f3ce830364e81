import { ResumeGuardError } from "../errors.ts";
import type { TokenScheme } from "./request.ts";

/**
 * `credentials = "Bearer" 1*SP b64token` (RFC 6750 section 2.1), `"DPoP" 1*SP token68` (RFC 9449 section 7.1); schemes
 * have no case (RFC 9110 section 11.1).
 */
const CREDENTIALS = /^(bearer|dpop) +([A-Za-z0-9\-._~+/]+=*)$/i;
const MENTIONS_SCHEME = /(?:^|,)\s*(?:bearer|dpop)(?:[\s,]|$)/i;

export interface TokenCredentials {
	readonly scheme: TokenScheme;
	readonly token: string;
}

/**
 * The access token of a request and how it was presented, from its Authorization header and from nowhere else: MCP
 * forbids tokens in the query, and they are not read from a body either.
 *
 * Give every value that the header has: `request.headersDistinct.authorization` in Node, where
 * `request.headers` silently keeps the first of several; `headers.get("authorization") ?? undefined` in fetch.
 *
 * `undefined`: neither Bearer nor DPoP credentials (no header, or another scheme). Throws `authorization_malformed` for
 * several credentials, for an empty token and for characters that no token has.
 */
export function tokenCredentials(
	authorization: string | readonly string[] | undefined,
): TokenCredentials | undefined {
	const values = typeof authorization === "string" ? [authorization] : (authorization ?? []);
	const [value] = values;
	if (value === undefined) return undefined;
	const [, scheme, token] = (values.length === 1 && CREDENTIALS.exec(value)) || [];
	if (scheme !== undefined && token !== undefined) {
		return { scheme: scheme.toLowerCase() === "dpop" ? "DPoP" : "Bearer", token };
	}
	if (values.length > 1 || MENTIONS_SCHEME.test(value)) {
		throw new ResumeGuardError("authorization_malformed", "The Authorization header is malformed");
	}
	return undefined;
}

/** The token, if it was presented as a Bearer token: `tokenCredentials` for hosts without sender-constrained tokens. */
export function bearerToken(authorization: string | readonly string[] | undefined): string | undefined {
	const credentials = tokenCredentials(authorization);
	return credentials?.scheme === "Bearer" ? credentials.token : undefined;
}
