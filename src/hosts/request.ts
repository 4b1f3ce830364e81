import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import type { Claims } from "../claims.ts";
import type { TokenRequest } from "../tokens/index.ts";
import type { RequestHeaders } from "../wire/headers.ts";
import type { AuthInfo } from "./sdk.ts";

/** The headers of a request of node:http, several of one name joined by a comma. */
export function headersOf(headers: IncomingHttpHeaders): RequestHeaders {
	// Of a request, only set-cookie is an array, and nobody looks at that.
	return headers as RequestHeaders;
}

/** Every Authorization header there is: Node keeps the first of several in `headers`. */
export function authorizationOf({ rawHeaders }: IncomingMessage): string[] {
	return rawHeaders.filter(
		(_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === "authorization",
	);
}

/**
 * The client certificate of the connection in DER, if there is one that the TLS server accepted: it asks for one
 * (`requestCert`), and an authority in its `ca` has signed it.
 */
export function certificateOf({ socket }: IncomingMessage): Uint8Array | undefined {
	return socket instanceof TLSSocket && socket.authorized ? socket.getPeerX509Certificate()?.raw : undefined;
}

/** A token for the MCP server. `AuthInfo` has no issuer or subject of its own, so all claims are in `extra`. */
export function authInfoOf(token: string, claims: Claims): AuthInfo {
	const { exp } = claims;
	const [clientId] = [claims.client_id, claims.azp].filter(isText);
	const scope = claims.scope ?? claims.scp;
	const scopes = isText(scope)
		? scope.split(" ").filter((value) => value !== "")
		: [scope].flat().filter(isText);
	return {
		token,
		clientId: clientId ?? "",
		scopes,
		...(typeof exp === "number" && { expiresAt: exp }),
		extra: { claims },
	};
}

function isText(value: unknown): value is string {
	return typeof value === "string";
}

/** What a token verifier may look at. */
export function tokenRequestOf(request: IncomingMessage & { originalUrl?: string }): TokenRequest {
	const { method = "", headers, socket } = request;
	const scheme = "encrypted" in socket && socket.encrypted ? "https" : "http";
	const certificate = certificateOf(request);
	return {
		method,
		url: `${scheme}://${headers.host ?? ""}${request.originalUrl ?? request.url ?? ""}`,
		headers,
		...(certificate !== undefined && { certificate }),
	};
}
