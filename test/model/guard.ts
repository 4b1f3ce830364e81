import { readFileSync } from "node:fs";
import type { CompletePolicyData } from "../../src/data.ts";
import type { Decision, PolicyData } from "../../src/generated/types.ts";
import { createResumeGuard, type ResumeGuard } from "../../src/guard.ts";
import type { Moment } from "./reference/decide.ts";
import type { Question } from "./reference/question.ts";

export type { CompletePolicyData };

/** What is held against the reference. */
export interface Subject {
	readonly policy: Promise<WebAssembly.Module>;
	readonly create: typeof createResumeGuard;
}

const ours: Subject = {
	policy: WebAssembly.compile(readFileSync("src/generated/policy.wasm")),
	create: createResumeGuard,
};

let subject = ours;

/** From now on this guard, or this policy, is asked, instead of the repository's own. */
export function setSubject(given: Partial<Subject>): void {
	subject = { ...ours, ...given };
}

/** The real guard with the real policy; a fault of the policy is no answer. */
export async function guardOf(data: PolicyData): Promise<ResumeGuard> {
	const { create, policy } = subject;
	return create({
		policy: await policy,
		data,
		onFault({ moment, reason, cause }) {
			throw new Error(`policy_fault at ${moment}: ${reason}`, { cause });
		},
	});
}

/** Asks at a moment that is known only now. */
export function ask(guard: ResumeGuard, moment: Moment, question: Question): Decision {
	const decide = guard[moment] as (question: unknown) => Decision;
	return decide(question);
}
