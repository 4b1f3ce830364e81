import { type CompletePolicyData, completeData } from "./data.ts";
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
 * @param given `data`: whatever was found where it should be. `policy`: `undefined` for the one in this package.
 *   `revision`: by default a digest of the data and of `wasm`, the bytes of the policy, where they are known
 * @throws {ResumeGuardError} `policy_invalid`, `data_invalid`, `file_unreadable`
 */
export async function loadRules(given: {
	readonly policy?: PolicySource | undefined;
	readonly data: unknown;
	/** The file that the data is from. */
	readonly path?: string | undefined;
	readonly wasm?: Uint8Array | undefined;
	readonly revision?: string | undefined;
}): Promise<Rules> {
	const data = completeData(given.data, given.path);
	const policy = await loadPolicy(given.policy, data);
	return { policy, data, revision: given.revision ?? (await revisionOf(data, given.wasm)) };
}

/** A digest of the data and, where it is known, of the bytes of the policy. */
export async function revisionOf(data: CompletePolicyData, wasm: Uint8Array | undefined): Promise<string> {
	const parts = [new TextEncoder().encode(JSON.stringify(data)), ...(wasm === undefined ? [] : [wasm])];
	return `sha256-${(await digestOf(parts)).slice(0, 16)}`;
}

/** SHA-256 over the SHA-256 of each part, hexadecimal. */
export async function digestOf(parts: readonly Uint8Array[]): Promise<string> {
	const digests = await Promise.all(
		parts.map((part) => crypto.subtle.digest("SHA-256", part as BufferSource)),
	);
	const all = new Uint8Array(digests.length * 32);
	for (const [index, digest] of digests.entries()) all.set(new Uint8Array(digest), index * 32);
	const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", all));
	return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
