import type { Decision } from "../generated/types.ts";
import { createResumeGuard } from "../guard.ts";
import { type PolicySource, packagedPolicy } from "../policy.ts";
import { type CaseResult, type Decider, type DecisionCase, decidersByData, runCase } from "../tables.ts";

/** What became of a case, and why its decision was `policy_fault`, if it was. */
export interface RunResult extends CaseResult {
	readonly fault?: string;
}

/** Runs cases by guards of this policy, one for each distinct data. */
export function createRunner(policy: PolicySource | undefined): (one: DecisionCase) => Promise<RunResult> {
	const faults = new WeakMap<Decision, string>();
	// Compiled once for all guards, as it is most of what creating one costs.
	const module = policy ?? WebAssembly.compile(packagedPolicy() as BufferSource);
	const deciders = decidersByData(async (data): Promise<Decider> => {
		let fault: string | undefined;
		const guard = await createResumeGuard({
			data,
			policy: await module,
			onFault: ({ reason, cause }) => {
				fault = cause === undefined ? reason : `${reason}: ${reasonOf(cause)}`;
			},
		});
		// A decision is synchronous: a fault meanwhile is its own.
		const watched =
			<Q, D extends Decision>(decide: (question: Q) => D) =>
			(question: Q): D => {
				fault = undefined;
				const decision = decide(question);
				if (fault !== undefined) faults.set(decision, fault);
				return decision;
			};
		return {
			session: watched(guard.session),
			call: watched(guard.call),
			resume: watched(guard.resume),
			delivery: watched(guard.delivery),
		};
	});
	return async (one) => {
		const result = await runCase(one, deciders);
		const fault = faults.get(result.got);
		return fault === undefined ? result : { ...result, fault };
	};
}

// opa-wasm throws strings and plain objects, too.
function reasonOf(cause: unknown): string {
	return cause instanceof Error ? cause.message : typeof cause === "string" ? cause : JSON.stringify(cause);
}
