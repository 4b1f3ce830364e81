import { MOMENTS, type Moment } from "../policy.ts";
import type { CaseResult } from "../tables.ts";
import { type Code, codesOfPolicy } from "./codes.ts";

/** `<moment> <code>`. */
export type CodeName = { [M in Moment]: `${M} ${Code<M>}` }[Moment];

export interface CodeCoverageOptions {
	/** What no case has to reach: `delivery scope_not_covered`, for example. */
	readonly except?: readonly CodeName[];
	/** The codes of rules of your own, which some case has to reach at some moment. */
	readonly custom?: readonly `custom:${string}`[];
}

/** Which codes the decisions of some cases had, in the order of the moments. */
export interface CodeCoverage {
	/** `<moment> <code>`, those of your own rules among them. */
	readonly reached: readonly string[];
	/** `<moment> <code>`, or a code of your own rules alone. Not what only a fault of host or policy leads to. */
	readonly missed: readonly string[];
}

/** @throws {TypeError} for an exception that is no code of a moment */
export function coverageOfCodes(
	results: Iterable<Pick<CaseResult, "moment" | "code">>,
	{ except = [], custom = [] }: CodeCoverageOptions = {},
): CodeCoverage {
	const decided = [...results];
	const all = MOMENTS.flatMap((moment) => codesOfPolicy(moment).map((code) => `${moment} ${code}`));
	const unknown = except.find((name) => !all.includes(name));
	if (unknown !== undefined) throw new TypeError(`coverage: \`except\` has ${unknown}, which is no code`);
	const reached = new Set(
		MOMENTS.flatMap((moment) => {
			const codes = decided.filter((one) => one.moment === moment).map(({ code }) => `${moment} ${code}`);
			return codes.sort();
		}),
	);
	const own = new Set<string>(decided.map(({ code }) => code));
	return {
		reached: [...reached],
		missed: [
			...all.filter((name) => !reached.has(name) && !except.some((one) => one === name)),
			...custom.filter((code) => !own.has(code)),
		],
	};
}
