import { readdirSync, readFileSync } from "node:fs";
import { type CompletePolicyData, readData } from "../src/data.ts";
import { readFacts } from "../src/facts.ts";
import type { Facts, PolicyData } from "../src/generated/types.ts";
import { validateTable } from "../src/generated/validators.js";
import { MOMENTS, type Moment } from "../src/policy.ts";

type Json = Record<string, unknown>;

/** A case of a decision table, with what it shares with its table and with the data file merged in. */
export interface DecisionCase {
	/** `<file>: <name>`, unique. */
	readonly name: string;
	readonly moment: Moment;
	/** What the guard is asked, as a host has it. */
	readonly question: Json;
	readonly data: CompletePolicyData;
	/** The members of the decision that matter. */
	readonly want: Json;
}

/** The decision tables, `test/cases/*.json`. */
export async function readCases(folder = "test/cases"): Promise<DecisionCase[]> {
	const baseline = JSON.parse(readFileSync("policies/mcp/data.json", "utf8")) as Json;
	const cases: DecisionCase[] = [];
	for (const file of readdirSync(folder).sort()) {
		const table: unknown = JSON.parse(readFileSync(`${folder}/${file}`, "utf8"));
		if (!validateTable(table)) {
			const [error] = validateTable.errors ?? [];
			throw new Error(`${folder}/${file}${error?.instancePath}: ${error?.message}`);
		}
		for (const { name, data, facts, want } of table.cases) {
			const { moment, ...question } = mergePatch(table.facts ?? {}, facts);
			if (!MOMENTS.includes(moment as Moment)) throw new Error(`${folder}/${file}, ${name}: no moment`);
			const merged = mergePatch(mergePatch(baseline, table.data ?? {}), data ?? {});
			cases.push({
				name: `${file}: ${name}`,
				moment: moment as Moment,
				question,
				data: await readData(merged as unknown as PolicyData),
				want,
			});
		}
	}
	const names = cases.map(({ name }) => name);
	const repeated = names.find((name, index) => names.indexOf(name) !== index);
	if (repeated !== undefined) throw new Error(`${folder}: ${repeated} is there twice`);
	if (cases.length === 0) throw new Error(`${folder}: no case found`);
	return cases;
}

/** A case as OPA itself takes it. */
export interface PolicyCase {
	readonly moment: Moment;
	readonly input: Facts;
	readonly data: CompletePolicyData;
	readonly want: Json;
}

/** The cases that reach the policy, by name: what is no question, the adapter answers by itself. */
export function policyCases(cases: readonly DecisionCase[]): Record<string, PolicyCase> {
	const reaching = cases.flatMap(({ name, moment, question, data, want }) => {
		const reading = readFacts(moment, question, data);
		return "facts" in reading ? [[name, { moment, input: reading.facts, data, want }] as const] : [];
	});
	return Object.fromEntries(reaching);
}

/** JSON Merge Patch (RFC 7396). */
function mergePatch(target: unknown, patch: Json): Json {
	const merged = new Map(Object.entries(isObject(target) ? target : {}));
	for (const [key, value] of Object.entries(patch)) {
		if (value === null) merged.delete(key);
		else merged.set(key, isObject(value) ? mergePatch(merged.get(key), value) : value);
	}
	return Object.fromEntries(merged);
}

function isObject(value: unknown): value is Json {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
