import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { type DecisionCase, readCases } from "../../scripts/tables.ts";
import { type Explanation, explain, renderHtml, renderText } from "../../src/explain/index.ts";
import type { Questions } from "../../src/facts.ts";
import { createResumeGuard, type Moment, type ResumeGuard } from "../../src/index.ts";
import { ask } from "../tables/run.ts";

const cases = await readCases();
const policy = await WebAssembly.compile(readFileSync("src/generated/policy.wasm"));
const guards = new Map<string, Promise<ResumeGuard>>();

function guardOf({ data }: DecisionCase): Promise<ResumeGuard> {
	const key = JSON.stringify(data);
	const guard = guards.get(key) ?? createResumeGuard({ policy, data, onFault: () => {} });
	guards.set(key, guard);
	return guard;
}

const explanations = new Map<DecisionCase, Explanation>();

async function explained(asked: DecisionCase): Promise<Explanation> {
	const { moment, question } = asked;
	const explanation =
		explanations.get(asked) ??
		explain(await guardOf(asked), moment, question as unknown as Questions[Moment]);
	explanations.set(asked, explanation);
	return explanation;
}

// Without these, no row was looked at.
const withoutRows = ["invalid_facts", "policy_fault"];

describe("every case of the decision tables", () => {
	it.each(cases.map((asked) => [asked.name, asked] as const))("%s", async (_, asked) => {
		const guard = await guardOf(asked);
		const explanation = await explained(asked);
		const { decision, rows, disagreements } = explanation;
		expect(decision).toEqual(ask(guard, asked.moment, asked.question));
		expect(decision).toEqual(expect.objectContaining(asked.want));
		expect(disagreements).toEqual([]);

		// The row that is said to have fired has the decision's code; the earlier ones are said not to have.
		const fired = rows.filter(({ state }) => state === "fired");
		expect(fired).toHaveLength(1);
		expect(fired[0]?.codes).toContain(decision.code);
		const at = rows.findIndex(({ state }) => state === "fired");
		const earlier = rows.slice(0, at).map(({ state }) => state);
		const allowed = withoutRows.includes(decision.code)
			? ["not_reached", "not_asked"]
			: ["not_fired", "not_asked"];
		expect(earlier.filter((state) => !allowed.includes(state))).toEqual([]);
		const later = rows.slice(at + 1).map(({ state }) => state);
		expect(later.filter((state) => state !== "not_reached" && state !== "not_asked")).toEqual([]);
		expect(rows.filter(({ facts }) => facts === "")).toEqual([]);

		// What is shown as required proceeds when it is asked.
		for (const { token, outcome } of explanation.further.trials) {
			if (token === "a token as required") expect(outcome).toBe("proceed");
		}
		if (decision.outcome === "reauthorize") {
			expect(explanation.further.trials.map(({ token }) => token)).toContain("a token as required");
		}

		// Both ways to show it say at least this, and neither lets anything through that is not to be seen.
		for (const text of [renderText(explanation, { width: 100, colour: false }), renderHtml(explanation)]) {
			expect(text).toContain(decision.code.replace("custom:…", ""));
			expect(text).toContain(String(decision.status));
			expect(text.replaceAll("\n", "")).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
		}
	});
});

test("the runs are all pending events, each once and in order", async () => {
	let seen = 0;
	for (const asked of cases) {
		const { events, decision } = await explained(asked);
		if (events === undefined) continue;
		expect(events.runs.reduce((sum, { count }) => sum + count, 0)).toBe(events.count);
		const delivered = events.runs.filter(({ state }) => state === "delivered");
		expect(delivered.reduce((sum, { count }) => sum + count, 0)).toBe(events.deliver);
		const held = [...events.runs, ...events.open].filter((one) => one.held);
		const isHeld = "held" in decision && decision.held !== undefined;
		expect(held).toHaveLength(isHeld ? 1 : 0);
		if (isHeld) expect(held[0]?.missing).toEqual(decision.held?.missing);
		seen += 1;
	}
	expect(seen).toBeGreaterThan(200);
});

test("the claims that are said not to be allowed are the decision's drift", async () => {
	let seen = 0;
	for (const asked of cases) {
		const { decision, comparison } = await explained(asked);
		if (decision.drift.length === 0) continue;
		const broken = comparison.claims.filter(({ allowed }) => !allowed).map(({ claim }) => claim);
		expect(broken).toEqual(expect.arrayContaining([...decision.drift]));
		seen += 1;
	}
	expect(seen).toBeGreaterThan(100);
});
