import { readdirSync, readFileSync } from "node:fs";
import { readFacts } from "../src/facts.ts";
import type { Facts, PolicyData } from "../src/generated/types.ts";
import type { Moment } from "../src/policy.ts";
import { type DecisionCase, readCases as readCasesOf } from "../src/tables.ts";

export type { DecisionCase };

/** The decision tables, `test/cases/*.json`. */
export function readCases(folder = "test/cases"): Promise<DecisionCase[]> {
	const baseline = JSON.parse(readFileSync("policies/mcp/data.json", "utf8")) as PolicyData;
	const tables = readdirSync(folder)
		.sort()
		.map((name) => ({ name, document: JSON.parse(readFileSync(`${folder}/${name}`, "utf8")) as unknown }));
	return readCasesOf(tables, baseline);
}

/** A case as OPA itself takes it. */
export interface PolicyCase {
	readonly moment: Moment;
	readonly input: Facts;
	readonly data: DecisionCase["data"];
	readonly want: DecisionCase["want"];
}

/** The cases that reach the policy, by name: what is no question, the adapter answers by itself. */
export function policyCases(cases: readonly DecisionCase[]): Record<string, PolicyCase> {
	const reaching = cases.flatMap(({ name, moment, question, data, want }) => {
		const reading = readFacts(moment, question, data);
		return "facts" in reading ? [[name, { moment, input: reading.facts, data, want }] as const] : [];
	});
	return Object.fromEntries(reaching);
}
