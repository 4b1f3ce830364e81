import type { PolicyData } from "../../../src/generated/types.ts";

export type Data = Required<PolicyData>;

/** Which audience stands for which resource: one step of coverage, under any of their names. */
export interface Coverage {
	covers(audiences: readonly string[], resource: string): boolean;
	coversAll(audiences: readonly string[], resources: readonly string[]): boolean;
	/** This server's own resource: a token with such an audience is one for this server. */
	isOwn(audience: string): boolean;
	/** The same resources, whatever they are called. */
	areSame(some: readonly string[], others: readonly string[]): boolean;
}

export function createCoverage(data: Data): Coverage {
	const { resources, tools, methods, session_need, coverage, aliases } = data;
	const namesOf = (resource: string) => aliases.find((set) => set.includes(resource)) ?? [resource];
	const entriesOf = (audience: string) => (Object.hasOwn(coverage, audience) ? coverage[audience] : []) ?? [];

	const covers: Coverage["covers"] = (audiences, resource) =>
		audiences.some((audience) =>
			namesOf(audience).some((name) =>
				namesOf(resource).some(
					(other) => name === other || entriesOf(name).some((entry) => standsFor(entry, other)),
				),
			),
		);

	const named = new Set([
		...resources,
		...[...Object.values(tools), ...Object.values(methods), session_need].flatMap(({ aud }) => aud),
		...Object.keys(coverage),
		...aliases.flat(),
	]);
	const entries = Object.values(coverage).flat();

	return {
		covers,
		coversAll: (audiences, needed) => needed.every((resource) => covers(audiences, resource)),
		isOwn: (audience) => named.has(audience) || entries.some((entry) => standsFor(entry, audience)),
		areSame: (some, others) =>
			[
				[some, others],
				[others, some],
			].every(([these = [], those = []]) =>
				these.every((one) => those.some((other) => namesOf(one).includes(other))),
			),
	};
}

/** An entry is exact, or it ends in `/*` and stands for what lies below that path, at a segment boundary. */
export function standsFor(entry: string, resource: string): boolean {
	if (!entry.endsWith("/*")) return entry === resource;
	const folder = entry.slice(0, -1);
	return resource.startsWith(folder) && resource.slice(folder.length).split("/").every(isPlain);
}

/** A path segment that has one meaning only: RFC 3986 `segment-nz` without dots alone and encoded slashes. */
function isPlain(segment: string): boolean {
	if (!/^(?:[A-Za-z0-9\-._~!$&'()+,;=:@]|%[0-9A-Fa-f]{2})+$/.test(segment)) return false;
	const decoded = segment.replace(/%2e/gi, ".");
	return decoded !== "." && decoded !== ".." && !/%2f|%5c/i.test(segment);
}
