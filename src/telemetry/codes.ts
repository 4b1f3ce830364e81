import type { Decision } from "../generated/types.ts";

type StandardCode = Exclude<Decision["code"], `custom:${string}`>;

// Complete: the type says so.
const standard: Readonly<Record<StandardCode, true>> = {
	audience_not_covered: true,
	binding_drift: true,
	covered: true,
	cursor_ahead: true,
	cursor_evicted: true,
	cursor_unknown: true,
	invalid_facts: true,
	policy_fault: true,
	principal_drift: true,
	quota_exceeded: true,
	request_id_in_use: true,
	scope_not_covered: true,
	session_required: true,
	session_unknown: true,
	token_expired: true,
	token_missing: true,
	tool_unmapped: true,
	undecided: true,
};

/** As OpenTelemetry's conventions have it for what is beyond a known set. */
export const OTHER = "_OTHER";
/** A policy may make its codes from what it was asked; each would be a time series of its own. */
const MOST_CUSTOM = 50;

/** A function from codes to labels of metrics, of which there are not too many, however many codes there are. */
export function createCodeLabels(): (code: string) => string {
	const custom = new Set<string>();
	return (code) => {
		if (Object.hasOwn(standard, code) || custom.has(code)) return code;
		if (custom.size >= MOST_CUSTOM || !/^custom:[a-z0-9_]{1,64}$/.test(code)) return OTHER;
		custom.add(code);
		return code;
	};
}
