import type { CompletePolicyData } from "../data.ts";
import { below } from "../resources.ts";
import { isCode } from "../testing/codes.ts";
import { type Found, pointer } from "./finding.ts";

/** What is allowed in policy data, and probably not meant. */
export function lintData(data: CompletePolicyData): Found[] {
	const places = indicatorsOf(data);
	return [
		...places.flatMap(({ indicator, at }) => lintIndicator(indicator, at)),
		...lintPairs(places),
		...lintCoverage(data),
		...lintAliases(data),
		...lintNeeds(data),
		...lintStatus(data),
	];
}

interface Place {
	readonly indicator: string;
	readonly at: string;
}

/** Everywhere that data names a resource; a wildcard without its star. */
function indicatorsOf(data: CompletePolicyData): Place[] {
	const { resources, tools, methods, session_need, coverage, aliases } = data;
	const list = (indicators: readonly string[], ...path: (string | number)[]) =>
		indicators.map((indicator, index) => ({ indicator, at: pointer(...path, index) }));
	const needs = Object.entries({ tools, methods }).flatMap(([map, of]) =>
		Object.entries(of).flatMap(([name, { aud }]) => list(aud, map, name, "aud")),
	);
	const covers = Object.entries(coverage).flatMap(([audience, entries]) => [
		{ indicator: audience, at: pointer("coverage", audience) },
		...list(entries, "coverage", audience).map(({ indicator, at }) => ({
			indicator: indicator.replace(/\/\*$/, ""),
			at,
		})),
	]);
	return [
		...list(resources, "resources"),
		...needs,
		...list(session_need.aud, "session_need", "aud"),
		...covers,
		...aliases.flatMap((set, index) => list(set, "aliases", index)),
	];
}

const URI = /^([A-Za-z][A-Za-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/s;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { https: "443", http: "80", wss: "443", ws: "80" };

/** Not in the form that MCP calls canonical, so that an authorization server or a client may well write it otherwise. */
function lintIndicator(indicator: string, at: string): Found[] {
	const warn = (rule: string, message: string): Found => ({
		severity: "warning",
		rule,
		pointer: at,
		message,
	});
	const [match, scheme = "", authority, path = "", query, fragment] = URI.exec(indicator) ?? [];
	if (match === undefined) {
		return [warn("indicator_not_uri", "no absolute URI, which a resource indicator is (RFC 8707 section 2)")];
	}
	const found: Found[] = [];
	if (fragment !== undefined) {
		const message = "has a fragment, which no resource indicator may have (RFC 8707 section 2)";
		found.push({ severity: "error", rule: "indicator_fragment", pointer: at, message });
	}
	if (query !== undefined) {
		found.push(warn("indicator_query", "has a query, which one should not have (RFC 8707 section 2)"));
	}
	if (scheme !== scheme.toLowerCase()) {
		found.push(
			warn("indicator_upper_case", "the scheme is not in lower case, as MCP's canonical form has it"),
		);
	}
	if (authority === undefined) return found;
	const [, userinfo, host = "", port] = /^(.*@)?(.*?)(?::(\d*))?$/s.exec(authority) ?? [];
	if (host !== host.toLowerCase()) {
		found.push(warn("indicator_upper_case", "the host is not in lower case, as MCP's canonical form has it"));
	}
	if (userinfo !== undefined) found.push(warn("indicator_userinfo", "has a user in it"));
	if (port !== undefined && (port === "" || port === DEFAULT_PORTS[scheme.toLowerCase()])) {
		found.push(warn("indicator_default_port", "names the port that its scheme has anyway"));
	}
	if (path.endsWith("/")) {
		found.push(warn("indicator_trailing_slash", "ends in a slash, which MCP's canonical form does not"));
	}
	if (found.length === 0 && !isNormal(indicator)) {
		found.push(warn("indicator_not_canonical", "URL libraries write it in another way than it is here"));
	}
	return found;
}

function isNormal(indicator: string): boolean {
	if (!URL.canParse(indicator)) return false;
	const { href } = new URL(indicator);
	return href === indicator || href === `${indicator}/`;
}

/** Compared exactly, two names that look like one are two. */
function lintPairs(places: readonly Place[]): Found[] {
	const first = new Map<string, Place>();
	const named = new Set<string>();
	return places.flatMap(({ indicator, at }): Found[] => {
		if (named.has(indicator)) return [];
		named.add(indicator);
		const plain = indicator.replace(/\/+$/, "");
		const other = first.get(plain);
		if (other === undefined) {
			first.set(plain, { indicator, at });
			return [];
		}
		const message = `differs only by a slash from ${other.at}; they are two resources`;
		return [{ severity: "warning", rule: "indicators_differ_by_slash", pointer: at, message }];
	});
}

function lintCoverage(data: CompletePolicyData): Found[] {
	const { coverage, aliases } = data;
	const needed = needsOf(data).flatMap(({ aud }) => aud.map(({ indicator }) => indicator));
	const names = new Set([
		...needed,
		...needed.flatMap((one) => aliases.filter((set) => set.includes(one)).flat()),
	]);
	return Object.entries(coverage).flatMap(([audience, entries]) => {
		const warn = (message: string, ...path: number[]): Found => ({
			severity: "warning",
			rule: "coverage_of_nothing",
			pointer: pointer("coverage", audience, ...path),
			message,
		});
		if (entries.length === 0) return [warn("this audience covers nothing")];
		return entries.flatMap((entry, index) => {
			if (entry === audience) return [warn("an audience covers itself anyway", index)];
			const covers = coverOf(entry);
			return [...names].some(covers) ? [] : [warn("covers nothing that a tool or method needs", index)];
		});
	});
}

interface Needed {
	readonly kind: "tool" | "method" | "session";
	readonly aud: readonly Place[];
}

function needsOf({ tools, methods, session_need }: CompletePolicyData): Needed[] {
	const places = (aud: readonly string[], ...path: string[]) =>
		aud.map((indicator, index) => ({ indicator, at: pointer(...path, "aud", index) }));
	return [
		...Object.entries(tools).map(([name, { aud }]) => ({
			kind: "tool" as const,
			aud: places(aud, "tools", name),
		})),
		...Object.entries(methods).map(([name, { aud }]) => ({
			kind: "method" as const,
			aud: places(aud, "methods", name),
		})),
		{ kind: "session", aud: places(session_need.aud, "session_need") },
	];
}

function coverOf(entry: string): (resource: string) => boolean {
	const stands = below(entry);
	return (resource) => resource === entry || stands(resource);
}

function lintAliases({ aliases }: CompletePolicyData): Found[] {
	return aliases.flatMap((set, index) =>
		new Set(set).size === 1
			? [
					{
						severity: "warning" as const,
						rule: "alias_of_itself",
						pointer: pointer("aliases", index),
						message: "names one and the same resource",
					},
				]
			: [],
	);
}

/** A name that is in two sets would make the two one. */
export function overlappingAliases(sets: readonly (readonly string[])[]): Found[] {
	const seen = new Map<string, number>();
	return sets.flatMap((set, index) =>
		[...new Set(set)].flatMap((name): Found[] => {
			const before = seen.get(name);
			seen.set(name, before ?? index);
			if (before === undefined) return [];
			const at = pointer("aliases", index, set.indexOf(name));
			const message = `is in the set ${pointer("aliases", before)}, too: sets of aliases are disjoint`;
			return [{ severity: "error", rule: "aliases_overlap", pointer: at, message }];
		}),
	);
}

function lintNeeds(data: CompletePolicyData): Found[] {
	const { resources, coverage, aliases, profile, tools, methods } = data;
	const found: Found[] = [];

	// With a token for each tool, nothing has to stand for a tool but itself.
	const isPerTool = profile === "per-tool" && Object.keys(coverage).length === 0;
	const covers = Object.values(coverage).flat().map(coverOf);
	const isCovered = (name: string) => resources.includes(name) || covers.some((stands) => stands(name));
	for (const { kind, aud } of isPerTool ? [] : needsOf(data)) {
		for (const { indicator, at } of aud) {
			const names = [indicator, ...aliases.filter((set) => set.includes(indicator)).flat()];
			if (names.some(isCovered)) continue;
			const rule = `${kind}_not_covered`;
			const message = "neither in `resources` nor covered: only a token for exactly this audience will do";
			found.push({ severity: "warning", rule, pointer: at, message });
		}
	}

	for (const [map, of] of Object.entries({ tools, methods })) {
		const what = map.slice(0, -1);
		const rest = Object.hasOwn(of, "*") ? of["*"] : undefined;
		for (const [name, need] of Object.entries(of)) {
			if (name === "*") continue;
			const at = pointer(map, name);
			if (name.includes("*")) {
				const message = `this is a ${what} of that very name: only "*" alone stands for others`;
				found.push({ severity: "warning", rule: `${what}_pattern`, pointer: at, message });
			}
			const lacks = (["aud", "scope"] as const).flatMap((claim) =>
				(rest?.[claim] ?? []).filter((one) => !need[claim].includes(one)),
			);
			if (rest !== undefined && lacks.length > 0) {
				const message = `shadows "*" and does not need what that needs: ${lacks.join(", ")}`;
				found.push({ severity: "warning", rule: `${what}_shadows_rest`, pointer: at, message });
			}
		}
	}
	return found;
}

function lintStatus({ status }: CompletePolicyData): Found[] {
	return Object.keys(status)
		.filter((code) => !isCode(code))
		.map((code) => ({
			severity: "warning",
			rule: "status_of_no_code",
			pointer: pointer("status", code),
			message: "no decision has this code",
		}));
}
