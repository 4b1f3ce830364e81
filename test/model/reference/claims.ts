import type { Confirmation } from "../../../src/generated/types.ts";

/** Claims as a host has them: a JWT payload or an introspection response. */
export type Claims = Readonly<Record<string, unknown>>;

/** What of a token, or of a binding, is compared. */
export interface Principal {
	/** `iss`, `sub`, `client_id`, `cnf`, and what data adds, by name; absent and null are one. */
	readonly identity: Readonly<Record<string, unknown>>;
	readonly aud: readonly string[];
	readonly scope: readonly string[];
}

export function readPrincipal(claims: Claims, furtherClaims: readonly string[]): Principal {
	const { iss, sub, aud, cnf } = claims as { iss: string; sub: string; aud: unknown; cnf?: Confirmation };
	const named = furtherClaims.map((name) => [name, Object.hasOwn(claims, name) ? claims[name] : undefined]);
	return {
		identity: {
			...Object.fromEntries(named),
			iss,
			sub,
			client_id: claims.client_id ?? claims.azp,
			cnf,
		},
		aud: [aud].flat() as string[],
		scope: readScope(claims.scope ?? claims.scp ?? []),
	};
}

// RFC 6749 section 3.3: space-delimited; some issuers send an array.
function readScope(scope: unknown): string[] {
	return typeof scope === "string" ? scope.split(" ").filter(Boolean) : (scope as string[]);
}

/** JSON values, members in any order; absent and null are one. */
export function areEqual(a: unknown, b: unknown): boolean {
	if (a === b || (a == null && b == null)) return true;
	if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
	if (Array.isArray(a) || Array.isArray(b)) {
		if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
		return a.every((one, index) => isSameValue(one, b[index]));
	}
	const [some, others] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
	return (
		some.size === others.size &&
		[...some].every(([name, value]) => others.has(name) && isSameValue(value, others.get(name)))
	);
}

// Inside a claim a null is a value.
function isSameValue(a: unknown, b: unknown): boolean {
	return (a === null) === (b === null) && areEqual(a, b);
}
