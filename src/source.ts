import type { PolicyData } from "./generated/types.ts";
import type { PolicySource } from "./policy.ts";
import { loadRules, type Rules } from "./rules.ts";

/** What says where a guard's rules come from. */
export interface RulesOptions {
	/** Policy data, or the path of a file like `policies/mcp/data.json`. */
	readonly data: PolicyData | string;
	/** The policy: Wasm that OPA built, as bytes, a compiled module or a path. Default: the one in this package. */
	readonly policy?: PolicySource;
}

/** Where a guard's rules come from. */
export interface RulesSource {
	readonly first: Rules;
	/** Called once: `swap` takes each later set of rules that is good. */
	start(swap: (next: Rules) => void): void;
	close(): void;
}

/** @throws {ResumeGuardError} `policy_invalid`, `data_invalid`, `file_unreadable` */
export async function openSource({ data, policy }: RulesOptions): Promise<RulesSource> {
	return { first: await loadRules({ data, policy }), start() {}, close() {} };
}
