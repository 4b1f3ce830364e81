import { readFileSync } from "node:fs";
import type { DecisionCase } from "../../scripts/tables.ts";
import type { Questions } from "../../src/facts.ts";
import { createResumeGuard, type Decision, type Moment, type ResumeGuard } from "../../src/index.ts";

const policy = await WebAssembly.compile(readFileSync("src/generated/policy.wasm"));
const guards = new Map<string, Promise<Guarded>>();

interface Guarded {
	readonly guard: ResumeGuard;
	readonly faults: string[];
}

/** What the guard answers, through the whole adapter, and what it said of it as a fault. */
export async function decide({ moment, question, data }: DecisionCase): Promise<{
	decision: Decision;
	faults: string[];
}> {
	const key = JSON.stringify(data);
	const found = guards.get(key) ?? create(data);
	guards.set(key, found);
	const { guard, faults } = await found;
	faults.length = 0;
	return { decision: ask(guard, moment, question as unknown as Questions[Moment]), faults: [...faults] };
}

async function create(data: DecisionCase["data"]): Promise<Guarded> {
	const faults: string[] = [];
	const onFault = ({ reason }: { reason: string }) => faults.push(reason);
	return { guard: await createResumeGuard({ policy, data, onFault }), faults };
}

/** A question whose moment is known only when it is asked. */
export function ask(guard: ResumeGuard, moment: Moment, question: unknown): Decision {
	const decide = guard[moment] as (question: unknown) => Decision;
	return decide(question);
}
