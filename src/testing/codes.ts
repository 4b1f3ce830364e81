import type { Decisions } from "../decision.ts";
import { MOMENTS, type Moment } from "../policy.ts";

/** The codes that a moment's decision may have, those of the operator's own rules aside. */
export type Code<M extends Moment = Moment> = Exclude<Decisions[M]["code"], `custom:${string}`>;

/**
 * `policy`: a row of the policy decides so. `adapter`: the guard answers so by itself, or no policy that is whole does.
 */
type Decides = "policy" | "adapter";

// The types are those of schemas/decision.json: neither can a code be left out here, nor one be made up.
const codes: { readonly [M in Moment]: Readonly<Record<Code<M>, Decides>> } = {
	session: {
		covered: "policy",
		token_missing: "policy",
		token_expired: "policy",
		session_unknown: "policy",
		session_required: "policy",
		principal_drift: "policy",
		binding_drift: "policy",
		request_id_in_use: "policy",
		quota_exceeded: "policy",
		undecided: "adapter",
		invalid_facts: "adapter",
		policy_fault: "adapter",
	},
	call: {
		covered: "policy",
		token_missing: "policy",
		token_expired: "policy",
		session_unknown: "policy",
		principal_drift: "policy",
		binding_drift: "policy",
		tool_unmapped: "policy",
		request_id_in_use: "policy",
		quota_exceeded: "policy",
		audience_not_covered: "policy",
		scope_not_covered: "policy",
		undecided: "adapter",
		invalid_facts: "adapter",
		policy_fault: "adapter",
	},
	resume: {
		covered: "policy",
		token_missing: "policy",
		token_expired: "policy",
		session_unknown: "policy",
		session_required: "policy",
		principal_drift: "policy",
		binding_drift: "policy",
		cursor_unknown: "policy",
		cursor_evicted: "policy",
		cursor_ahead: "policy",
		audience_not_covered: "policy",
		scope_not_covered: "policy",
		undecided: "adapter",
		invalid_facts: "adapter",
		policy_fault: "adapter",
	},
	delivery: {
		covered: "policy",
		token_missing: "policy",
		token_expired: "policy",
		audience_not_covered: "policy",
		scope_not_covered: "policy",
		undecided: "adapter",
		invalid_facts: "adapter",
		policy_fault: "adapter",
	},
};

/** The codes that the rows of the policy have at a moment. */
export function codesOfPolicy(moment: Moment): string[] {
	return Object.entries<Decides>(codes[moment])
		.filter(([, decides]) => decides === "policy")
		.map(([code]) => code);
}

/** Whether any decision may have this code. */
export function isCode(code: string): boolean {
	return /^custom:[a-z0-9_]+$/.test(code) || MOMENTS.some((moment) => Object.hasOwn(codes[moment], code));
}
