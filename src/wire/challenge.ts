/** `error` of a challenge: RFC 6750 section 3.1, RFC 9449 sections 7.1 and 9. */
export type ChallengeError =
	| "invalid_request"
	| "invalid_token"
	| "insufficient_scope"
	| "invalid_dpop_proof"
	| "use_dpop_nonce";

export interface Challenge {
	/** For the DPoP scheme (RFC 9449 section 7.1): the algorithms of proofs. Absent: the Bearer scheme. */
	readonly dpopAlgorithms?: readonly string[] | undefined;
	/** Absent: the request had no credentials (RFC 6750 section 3). */
	readonly error?: ChallengeError;
	readonly description?: string;
	/** Scopes that would do; an empty list is not valid and is left out. */
	readonly scope?: readonly string[];
	/** RFC 9728 section 5.1. */
	readonly resourceMetadata?: string | undefined;
}

/** The value of `WWW-Authenticate` (RFC 6750 section 3, RFC 9449 section 7.1). */
export function challengeOf({
	dpopAlgorithms,
	error,
	description,
	scope = [],
	resourceMetadata,
}: Challenge): string {
	const scheme = dpopAlgorithms === undefined ? "Bearer" : "DPoP";
	const parameters = [
		["error", error],
		["error_description", description],
		["scope", scope.length > 0 ? scope.join(" ") : undefined],
		["resource_metadata", resourceMetadata],
		["algs", dpopAlgorithms?.join(" ")],
	].flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${quotable(value)}"`]));
	return parameters.length === 0 ? scheme : `${scheme} ${parameters.join(", ")}`;
}

// The characters that RFC 6750 section 3 allows in these parameters; others have no place in a header.
function quotable(value: string): string {
	return value.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "");
}
