/** RFC 6750 section 3.1, `error` of a challenge. */
export type BearerError = "invalid_request" | "invalid_token" | "insufficient_scope";

export interface Challenge {
	/** Absent: the request had no credentials (RFC 6750 section 3). */
	readonly error?: BearerError;
	readonly description?: string;
	/** Scopes that would do; an empty list is not valid and is left out. */
	readonly scope?: readonly string[];
	/** RFC 9728 section 5.1. */
	readonly resourceMetadata?: string | undefined;
}

/** The value of `WWW-Authenticate` for a Bearer challenge (RFC 6750 section 3). */
export function challengeOf({ error, description, scope = [], resourceMetadata }: Challenge): string {
	const parameters = [
		["error", error],
		["error_description", description],
		["scope", scope.length > 0 ? scope.join(" ") : undefined],
		["resource_metadata", resourceMetadata],
	].flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${quotable(value)}"`]));
	return parameters.length === 0 ? "Bearer" : `Bearer ${parameters.join(", ")}`;
}

// The characters that RFC 6750 section 3 allows in these parameters; others have no place in a header.
function quotable(value: string): string {
	return value.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "");
}
