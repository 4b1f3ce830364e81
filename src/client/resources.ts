import { isRecord, parse } from "./decision.ts";
import type { Fetch } from "./ground.ts";

/** RFC 3986 `pchar`, without `*`, encoded slashes and backslashes. */
const SEGMENT = `(?:[A-Za-z0-9._~!$&'()+,;=:@-]|%(?!2f|5c)[0-9a-f]{2})+`;
/** Scheme, authority and a path without dot segments and empty segments; no query, no fragment. */
const PLAIN = String.raw`[a-z][a-z0-9+.-]*://[a-z0-9._~!$&'()+,;=:@%[\]-]+(?:/(?!(?:\.|%2e){1,2}(?:/|$))${SEGMENT})*`;
const WILDCARD = new RegExp(String.raw`^${PLAIN}/\*$`, "i");
const RESOURCE = new RegExp(`^${PLAIN}$`, "i");

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/** Whether a server may ask for tokens for a resource. */
export type MayAskFor = (indicator: string, signal: AbortSignal) => Promise<boolean>;

/**
 * A server may ask for tokens for what the application allows, and for the resource that its own metadata names.
 * Comparisons are exact (RFC 8707, RFC 7519). Whatever a server says in a challenge (`resource_metadata`) is not
 * followed: metadata is looked for only where RFC 9728 section 3.1 has it, and is fetched when it is first needed.
 *
 * @param allowed resource indicators; one whose path ends in `/*` stands for what lies below it
 * @throws {TypeError} for a wildcard that is none
 */
export function createMayAskFor(url: URL, allowed: readonly string[], fetch: Fetch): MayAskFor {
	const isAllowed = readAllowed(allowed);
	let named: string | undefined;
	return async (indicator, signal) => {
		if (isAllowed(indicator)) return true;
		named ??= await resourceOf(url, fetch, signal);
		return indicator === named;
	};
}

function readAllowed(allowed: readonly string[]): (indicator: string) => boolean {
	const wildcards = allowed.filter((entry) => entry.includes("*"));
	const wrong = wildcards.find((entry) => !WILDCARD.test(entry));
	if (wrong !== undefined) {
		throw new TypeError(
			`${JSON.stringify(wrong)}: a wildcard has a scheme, an authority and a path that ends in /*`,
		);
	}
	const exact = new Set(allowed.filter((entry) => !entry.includes("*")));
	const prefixes = wildcards.map((entry) => entry.slice(0, -1));
	return (indicator) =>
		exact.has(indicator) ||
		(RESOURCE.test(indicator) && prefixes.some((prefix) => indicator.startsWith(prefix)));
}

// RFC 9728 section 3.3: the resource must be the one that the metadata's URL was made from. That of the origin may
// also be published for it as a whole.
async function resourceOf(url: URL, fetch: Fetch, signal: AbortSignal): Promise<string | undefined> {
	const path = url.pathname === "/" ? "" : url.pathname;
	const own = new URL(`${url.origin}${url.pathname}${url.search}`).href;
	const places = [
		{ at: `${url.origin}${WELL_KNOWN}${path}${url.search}`, names: [own] },
		{ at: `${url.origin}${WELL_KNOWN}`, names: [own, new URL(url.origin).href] },
	];
	for (const { at, names } of places) {
		const resource = await read(at, fetch, signal);
		if (resource !== undefined && URL.canParse(resource) && names.includes(new URL(resource).href))
			return resource;
	}
	return undefined;
}

async function read(at: string, fetch: Fetch, signal: AbortSignal): Promise<string | undefined> {
	try {
		const response = await fetch(at, { headers: { accept: "application/json" }, redirect: "manual", signal });
		const text = await response.text();
		if (!response.ok) return undefined;
		const metadata = parse(text);
		return isRecord(metadata) && typeof metadata.resource === "string" ? metadata.resource : undefined;
	} catch {
		// It is as if there were none: the server may ask for less.
		return undefined;
	}
}
