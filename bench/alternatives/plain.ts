import { deepStrictEqual } from "node:assert";
import type { Decision, ResumeQuestion, SessionQuestion } from "mcp-resume-guard";
import type { CompletePolicyData } from "../../src/data.ts";
import { createReference } from "../../test/model/reference/decide.ts";
import type { Answer, Question } from "../../test/model/reference/question.ts";

/**
 * The limit: the same rules in plain TypeScript, without a policy that an operator could read or replace, without a
 * check of what comes in or goes out, and without a fold of the events.
 */
export function createPlain(data: CompletePolicyData) {
	const decide = createReference(data);
	return {
		session: (question: SessionQuestion): Answer => decide("session", question as Question),
		resume: (question: ResumeQuestion): Answer => decide("resume", question as Question),
	};
}

/** Nothing is timed that decides otherwise. */
export function assertSame(decision: Decision, answer: Answer): void {
	deepStrictEqual(decided(answer), decided(decision));
}

function decided(answer: Answer | Decision) {
	const { outcome, code, deliver, cursor } = answer as Answer;
	return { outcome, code, deliver, cursor };
}
