import type { ResumeGuard } from "../../../src/guard.ts";
import { ask } from "../guard.ts";
import { isSameAnswer } from "../reference/compare.ts";
import type { Moment, Reference } from "../reference/decide.ts";
import type { Answer, Question } from "../reference/question.ts";

/** The real guard, asked once for each question. */
export interface MemoGuard {
	readonly guard: ResumeGuard;
	/** The part of event ids that is random, which is written otherwise in what is asked and put back in what is answered. */
	setEpoch(epoch: string): void;
	readonly counts: { asked: number; decided: number };
}

const PLACEHOLDER = "epoch";

/**
 * Two questions are one if they differ in nothing but the random part of event ids (the guard hands ids through, so that
 * it decides about a placeholder what it decides about the id) and were put at the same time. Each answer is held against
 * the reference's.
 */
export function memoGuard(guard: ResumeGuard, reference: Reference): MemoGuard {
	const known = new Map<string, string>();
	const counts = { asked: 0, decided: 0 };
	let epoch = PLACEHOLDER;

	function decide(moment: Moment, asked: object): unknown {
		counts.asked += 1;
		const now = Date.now() / 1000;
		const text = JSON.stringify({ ...asked, now }).replaceAll(epoch, PLACEHOLDER);
		const key = `${moment} ${text}`;
		const answered = known.get(key) ?? decideFirst(moment, JSON.parse(text) as Question);
		known.set(key, answered);
		return JSON.parse(answered.replaceAll(PLACEHOLDER, epoch));
	}

	function decideFirst(moment: Moment, question: Question): string {
		counts.decided += 1;
		const decision: Answer = ask(guard, moment, question);
		const expected = reference(moment, question);
		if (!isSameAnswer(decision, expected)) {
			throw new Error(
				`the guard decides other than the reference: ${JSON.stringify({ moment, question, decision, expected })}`,
			);
		}
		return JSON.stringify(decision);
	}

	const moments = {
		session: (question) => decide("session", question),
		call: (question) => decide("call", question),
		resume: (question) => decide("resume", question),
		delivery: (question) => decide("delivery", question),
	} as Pick<ResumeGuard, "session" | "call" | "resume" | "delivery">;
	return {
		guard: Object.assign(Object.create(guard) as ResumeGuard, moments, { probe: moments }),
		setEpoch(next) {
			epoch = next;
		},
		counts,
	};
}
