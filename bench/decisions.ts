import { deepStrictEqual } from "node:assert";
import { readFile } from "node:fs/promises";
import { loadPolicy } from "@open-policy-agent/opa-wasm";
import { createResumeGuard, type EventInput, type Facts, type Moment, type Pending } from "mcp-resume-guard";
import { readFacts } from "../src/facts.ts";
import { foldEvents } from "../src/fold.ts";
import type { Comparison } from "./compare.ts";
import { listTools, manyEvents, resume, storyEvents, TOKENS } from "./questions.ts";

/**
 * Decisions through the whole adapter (normalise, fold, evaluate, check), beside the floor: a policy that gives the
 * same answer as a constant, asked with the same facts through plain opa-wasm.
 */
export async function compareDecisions(): Promise<Comparison[]> {
	const guard = await createResumeGuard({ data: "policies/mcp/data.json" });
	const floor = await loadPolicy(await readFile("bench/floor.wasm"));

	function factsOf(moment: Moment, question: unknown): Facts {
		const reading = readFacts(moment, question, guard.data);
		if ("problem" in reading) throw new Error(reading.problem.detail);
		return reading.facts;
	}

	function besideFloor(
		subject: string,
		decide: () => unknown,
		facts: Facts,
		entrypoint: string,
	): Comparison[] {
		const runBeside = () => floor.evaluate(facts, entrypoint);
		deepStrictEqual(runBeside(), [{ result: decide() }]);
		return [
			{ subject, run: decide, beside: "floor", runBeside, atMost: 2.5 },
			{
				subject: "  JSON.stringify of its facts",
				run: () => JSON.stringify(facts),
				beside: "floor",
				runBeside,
			},
		];
	}

	const story = storyEvents();
	const many = manyEvents(10_000);
	const sessions = TOKENS.flatMap((token) => {
		const question = listTools(token);
		const facts = factsOf("session", question);
		return besideFloor(`session, ${token} token`, () => guard.session(question), facts, "floor/session");
	});
	const resumes = TOKENS.flatMap((token) => {
		const question = resume(token, story);
		const facts = factsOf("resume", question);
		return besideFloor(`resume, ${token} token`, () => guard.resume(question), facts, `floor/${token}`);
	});
	const folded = TOKENS.map((token): Comparison => {
		const long = resume(token, fold(many));
		const short = resume(token, fold(story));
		return {
			subject: `resume, ${token} token, 10,000 events of 4 labels, folded`,
			run: () => guard.resume(long),
			beside: "7 of 2, folded",
			runBeside: () => guard.resume(short),
			atMost: 2,
		};
	});
	const folding: Comparison = {
		subject: "fold of 10,000 events",
		run: () => fold(many),
		beside: "JSON.stringify of them",
		runBeside: () => JSON.stringify(many),
		atMost: 1,
	};
	return [...sessions, ...resumes, ...folded, folding];
}

function fold(events: readonly EventInput[]): Pending {
	const reading = foldEvents(events, "41");
	if ("problem" in reading) throw new Error(reading.problem);
	return reading.value;
}
