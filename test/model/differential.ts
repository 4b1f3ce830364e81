import fc from "fast-check";
import { asked, policyData } from "./arbitraries.ts";
import { ask, guardOf } from "./guard.ts";
import { isSameAnswer } from "./reference/compare.ts";
import { createReference } from "./reference/decide.ts";

// Making a guard costs more than asking it.
const QUESTIONS = 24;

/**
 * Holds the guard's whole decisions against the reference's, for random data and questions; resolves with how many of
 * each kind there were. Rejects at the first that differs, with the seed.
 */
export async function compareAtRandom(
	runs: number,
	options: { seed?: number },
): Promise<Map<string, number>> {
	const seen = new Map<string, number>();
	await fc.assert(
		fc.asyncProperty(
			policyData,
			fc.array(asked, { minLength: 1, maxLength: QUESTIONS, size: "max" }),
			async (data, all) => {
				const guard = await guardOf(data);
				const reference = createReference(guard.data);
				for (const { moment, question } of all) {
					const decision = ask(guard, moment, question);
					const expected = reference(moment, question);
					if (!isSameAnswer(decision, expected)) {
						throw new Error(JSON.stringify({ moment, question, decision, expected }, undefined, "\t"));
					}
					const kind = `${moment} ${decision.outcome} ${decision.code}`;
					seen.set(kind, (seen.get(kind) ?? 0) + 1);
				}
			},
		),
		{ numRuns: runs, ...options },
	);
	return seen;
}
