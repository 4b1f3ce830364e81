/** How a token was presented: RFC 6750 section 2.1, RFC 9449 section 7.1. */
export type TokenScheme = "Bearer" | "DPoP";

/** The request that a token came with. */
export interface TokenRequest {
	readonly method: string;
	/**
	 * As the client wrote it, before anything of its path was taken away or rewritten. Absolute or from the path on: a
	 * scheme and a host say nothing that can be relied on, since clients choose the `Host` header.
	 */
	readonly url: string;
	/**
	 * Names in lower case, as Node has them; from fetch, `Object.fromEntries(request.headers)`. Several values of one
	 * name are a list, or joined by a comma: of two `DPoP` headers, none may be lost on the way here.
	 */
	readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
	/** Absent: `Bearer`. */
	readonly scheme?: TokenScheme;
	/**
	 * The client certificate of the TLS connection in DER, whose private key the client has proved to hold. Only one
	 * that the TLS stack, or a proxy that is trusted to say so, has accepted.
	 */
	readonly certificate?: Uint8Array;
}
