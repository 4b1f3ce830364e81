import type { CompletePolicyData } from "../data.ts";

/** Where protected-resource metadata is, and what it says (RFC 9728). */
export interface ResourceMetadata {
	/** The absolute URL, for challenges. */
	readonly url: string;
	/** The path that the host serves it at. */
	readonly path: string;
	readonly document: {
		readonly resource: string;
		readonly authorization_servers: readonly string[];
		readonly scopes_supported?: readonly string[];
		readonly bearer_methods_supported: readonly ["header"];
	};
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/**
 * The metadata of this server: of the first of `resources` that is an http(s) URL.
 *
 * @param authorizationServers issuers
 * @returns `undefined` if no resource is an http(s) URL: there is nowhere that it could be published
 */
export function resourceMetadata(
	data: CompletePolicyData,
	authorizationServers: readonly string[],
): ResourceMetadata | undefined {
	const resource = data.resources.find((indicator) => /^https?:\/\/[^/]/.test(indicator));
	if (resource === undefined || !URL.canParse(resource)) return undefined;
	// RFC 9728 section 3.1: between the host and the path of the resource.
	const { origin, pathname, search } = new URL(resource);
	const path = `${WELL_KNOWN}${pathname === "/" ? "" : pathname}`;
	const scopes = scopesOf(data);
	return {
		url: `${origin}${path}${search}`,
		path,
		document: {
			resource,
			authorization_servers: authorizationServers,
			...(scopes.length > 0 && { scopes_supported: scopes }),
			bearer_methods_supported: ["header"],
		},
	};
}

/** The metadata's path for a resource without a path, which clients also look at. */
export const rootMetadataPath = WELL_KNOWN;

function scopesOf({ tools, methods, session_need }: CompletePolicyData): string[] {
	const needs = [...Object.values(tools), ...Object.values(methods), session_need];
	return [...new Set(needs.flatMap(({ scope }) => scope))].sort();
}
