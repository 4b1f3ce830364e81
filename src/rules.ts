import { type CompletePolicyData, readData } from "./data.ts";
import type { PolicyData } from "./generated/types.ts";
import { loadPolicy, type Policy, type PolicySource } from "./policy.ts";

/** A policy with its data: what decides, under one revision. */
export interface Rules {
	readonly policy: Policy;
	readonly data: CompletePolicyData;
	readonly revision: string;
}

/**
 * Loads a policy and its data, and holds them to their contracts.
 *
 * @param given `policy`: `undefined` for the one in this package. `revision`: by default a digest of the data
 * @throws {ResumeGuardError} `policy_invalid`, `data_invalid`, `file_unreadable`
 */
export async function loadRules(given: {
	readonly policy?: PolicySource | undefined;
	readonly data: PolicyData | string;
	readonly revision?: string;
}): Promise<Rules> {
	const data = await readData(given.data);
	const policy = await loadPolicy(given.policy, data);
	return { policy, data, revision: given.revision ?? (await digest(JSON.stringify(data))) };
}

async function digest(text: string): Promise<string> {
	const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
	const hex = [...new Uint8Array(hash.slice(0, 8))].map((byte) => byte.toString(16).padStart(2, "0"));
	return `sha256-${hex.join("")}`;
}
