import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { CompletePolicyData } from "../src/data.ts";
import { createResumeGuard, type PolicyData, type ResumeGuard } from "../src/index.ts";
import { below, ownResources } from "../src/resources.ts";
import { type Asked, asked, askedResume, NOW, policyData } from "./arbitraries.ts";
import { ask } from "./tables/run.ts";

const policy = await WebAssembly.compile(readFileSync("src/generated/policy.wasm"));

// Questions of one guard: making it costs more than asking it.
const twelve = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 12, maxLength: 12 });

function guardOf(data: PolicyData): Promise<ResumeGuard> {
	return createResumeGuard({ policy, data, onFault: () => {} });
}

test("a token exactly as required proceeds, and the session goes on with it", async () => {
	const seen = new Set<string>();
	await fc.assert(
		fc.asyncProperty(policyData, twelve(asked), async (data, all) => {
			const guard = await guardOf(data);
			const isOwn = ownResources(guard.data);
			for (const { moment, question } of all) {
				const decision = ask(guard, moment, question);
				if (decision.outcome !== "reauthorize") continue;
				// A delivery is asked of a stream whose principal is known.
				if (question.presented.sub !== "alice") continue;
				seen.add(`${guard.data.profile} ${moment} ${decision.code}`);
				const { aud, scope } = decision.required;
				expect(aud.length).toBeGreaterThan(0);
				expect(aud.filter((audience) => !isOwn(audience))).toEqual([]);

				const { iss, sub, client_id } = question.presented;
				const presented = { iss, sub, client_id, aud, scope, exp: NOW + 60 };
				expect(ask(guard, moment, { ...question, presented })).toMatchObject({ outcome: "proceed" });
				const request = { ...question.request, method: "POST" };
				const ping = { ...question, presented, request, rpc: "ping" };
				expect(ask(guard, "session", ping)).toMatchObject({ outcome: "proceed" });
			}
		}),
		{ numRuns: 250 },
	);
	// It says nothing if it is never asked.
	const moments = ["call", "resume", "delivery"];
	const codes = ["audience_not_covered", "scope_not_covered"];
	const wanted = ["covering", "per-tool"].flatMap((profile) =>
		moments.flatMap((moment) => codes.map((code) => `${profile} ${moment} ${code}`)),
	);
	expect(wanted.filter((name) => !seen.has(name))).toEqual([]);
});

test("what is delivered is covered, and nothing is delivered but on proceed, or as a prefix", async () => {
	let delivered = 0;
	await fc.assert(
		fc.asyncProperty(policyData, twelve(askedResume), async (data, all) => {
			const guard = await guardOf(data);
			const isCovered = coverageOf(guard.data);
			for (const { moment, question } of all) {
				const decision = ask(guard, moment, question);
				if (!("deliver" in decision) || decision.deliver === 0) continue;
				expect(["proceed", "reauthorize"]).toContain(decision.outcome);
				expect(decision.outcome === "proceed" || guard.data.replay === "prefix").toBe(true);
				const { aud, scope } = question.presented as { aud: string[]; scope: string[] };
				for (const event of question.pending?.slice(0, decision.deliver) ?? []) {
					expect(event.aud.filter((resource) => !isCovered(aud, resource))).toEqual([]);
					expect(event.scope.filter((value) => !scope.includes(value))).toEqual([]);
					delivered += 1;
				}
			}
		}),
		{ numRuns: 150 },
	);
	expect(delivered).toBeGreaterThan(300);
});

test("order and repetition in aud and scope change nothing", async () => {
	await fc.assert(
		fc.asyncProperty(policyData, twelve(fc.tuple(asked, fc.nat())), async (data, all) => {
			const guard = await guardOf(data);
			for (const [{ moment, question }, seed] of all) {
				expect(ask(guard, moment, shuffled(question, seed))).toEqual(ask(guard, moment, question));
			}
		}),
		{ numRuns: 100 },
	);
});

/** Whether audiences stand for a resource, one step of coverage, under any of their names: the obvious way. */
function coverageOf({ coverage, aliases }: CompletePolicyData) {
	const namesOf = (one: string) => [one, ...aliases.filter((set) => set.includes(one)).flat()];
	const standsFor = (audience: string, resource: string) =>
		audience === resource ||
		(coverage[audience] ?? []).some((entry) => entry === resource || below(entry)(resource));
	return (audiences: readonly string[], resource: string) =>
		audiences.flatMap(namesOf).some((name) => namesOf(resource).some((other) => standsFor(name, other)));
}

/** The same sets, otherwise written, wherever a question has `aud` and `scope`. */
function shuffled(question: Asked["question"], seed: number): Asked["question"] {
	const visit = (value: unknown, key?: string): unknown => {
		if (Array.isArray(value)) {
			if (key !== "aud" && key !== "scope") return value.map((item) => visit(item));
			const at = value.length === 0 ? 0 : seed % value.length;
			return [...value.slice(at), ...value.slice(0, at), ...value.slice(0, seed % 3)];
		}
		if (typeof value !== "object" || value === null) return value;
		return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, visit(member, name)]));
	};
	return visit(question) as Asked["question"];
}
