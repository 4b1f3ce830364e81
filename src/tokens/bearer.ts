import { ResumeGuardError } from "../errors.ts";

/** `credentials = "Bearer" 1*SP b64token` (RFC 6750 section 2.1); schemes have no case (RFC 9110 section 11.1). */
const CREDENTIALS = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;
const MENTIONS_BEARER = /(?:^|,)\s*bearer(?:[\s,]|$)/i;

/**
 * The access token of a request, from its Authorization header and from nowhere else: MCP forbids tokens in the
 * query, and they are not read from a body either.
 *
 * Give every value that the header has: `request.headersDistinct.authorization` in Node, where
 * `request.headers` silently keeps the first of several; `headers.get("authorization") ?? undefined` in fetch.
 *
 * `undefined`: no Bearer credentials (no header, or another scheme). Throws `authorization_malformed` for
 * several credentials, for an empty token and for characters that no token has.
 */
export function bearerToken(authorization: string | readonly string[] | undefined): string | undefined {
	const values = typeof authorization === "string" ? [authorization] : (authorization ?? []);
	const [value] = values;
	if (value === undefined) return undefined;
	const token = values.length === 1 ? CREDENTIALS.exec(value)?.[1] : undefined;
	if (token === undefined && (values.length > 1 || MENTIONS_BEARER.test(value))) {
		throw new ResumeGuardError("authorization_malformed", "The Authorization header is malformed");
	}
	return token;
}
