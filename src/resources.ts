import type { PolicyData } from "./generated/types.ts";

/** RFC 3986 `pchar`, without `*` (no indicator has one), encoded slashes and backslashes. */
const SEGMENT = `(?:[A-Za-z0-9._~!$&'()+,;=:@-]|%(?!2f|5c)[0-9a-f]{2})+`;
/** Scheme, authority and a path without dot segments and empty segments; no query, no fragment. */
const PLAIN = String.raw`[a-z][a-z0-9+.-]*://[a-z0-9._~!$&'()+,;=:@%[\]-]+(?:/(?!(?:\.|%2e){1,2}(?:/|$))${SEGMENT})*`;

const WILDCARD = new RegExp(String.raw`^${PLAIN}/\*$`, "i");
const RESOURCE = new RegExp(`^${PLAIN}$`, "i");

/**
 * What a wildcard coverage entry stands for: `https://rs.example/tools/*` for every resource with that
 * scheme, authority and path and at least one more segment. The comparison is exact (RFC 8707, RFC 7519:
 * case, ports, percent-encoding). Below nothing is a resource that parsers may read in more than one way:
 * with dot segments (`%2e` included), empty segments (a trailing slash is one), encoded slashes, backslashes,
 * query, fragment, or characters that no URI has (RFC 3986). Any other entry has nothing below it.
 */
export function below(entry: string): (resource: string) => boolean {
	if (!WILDCARD.test(entry)) return () => false;
	const prefix = entry.slice(0, -1);
	return (resource) => resource.startsWith(prefix) && RESOURCE.test(resource);
}

/**
 * This server's own resources: the audiences that its token verifier accepts. They are what data names in
 * `resources`, in `aud` of `tools`, `methods` and `session_need`, in `coverage` (keys, exact entries, and what
 * lies below wildcard entries), and every name in `aliases`. Comparisons are exact.
 */
export function ownResources(data: PolicyData): (audience: string) => boolean {
	const entries = Object.values(data.coverage ?? {}).flat();
	const needs = [data.tools, data.methods].flatMap((map) => Object.values(map ?? {}));
	if (data.session_need) needs.push(data.session_need);
	const named = new Set([
		...data.resources,
		...needs.flatMap((need) => need.aud),
		...Object.keys(data.coverage ?? {}),
		...entries.filter((entry) => !entry.includes("*")),
		...(data.aliases ?? []).flat(),
	]);
	const wildcards = entries.filter((entry) => entry.includes("*")).map(below);
	return (audience) => named.has(audience) || wildcards.some((stands) => stands(audience));
}
