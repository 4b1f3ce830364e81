import { type CompletePolicyData, describe, readData } from "./data.ts";
import type { Decisions } from "./decision.ts";
import { ResumeGuardError } from "./errors.ts";
import type { Questions } from "./facts.ts";
import type { Decision, PolicyData, Table } from "./generated/types.ts";
import { validateTable } from "./generated/validators.js";
import { MOMENTS, type Moment } from "./policy.ts";

type Json = Readonly<Record<string, unknown>>;

/** A decision table as it was read, and what to call it: its file, for example. */
export interface NamedTable {
	readonly name: string;
	readonly document: unknown;
}

/** A case of a decision table, with what it shares with its table and with the data beneath merged in. */
export interface DecisionCase {
	/** `<table>: <case>`, unique. */
	readonly name: string;
	readonly moment: Moment;
	/** What the guard is asked, as a host has it. */
	readonly question: Json;
	readonly data: CompletePolicyData;
	/** The members of the decision that matter. */
	readonly want: Json;
}

/** What became of a case. */
export interface CaseResult {
	/** `<table>: <case>`, unique. */
	readonly name: string;
	readonly moment: Moment;
	/** What the guard was asked, without the moment. */
	readonly facts: Json;
	readonly want: Json;
	readonly got: Decision;
	/** The members of `want` that `got` does not have so, and `code` if nothing was decided; none if `ok`. */
	readonly differs: readonly string[];
	readonly ok: boolean;
	/** The rule that decided. */
	readonly code: Decision["code"];
}

/** Whoever decides at the four moments: a guard. */
export type Decider = { readonly [M in Moment]: (question: Questions[M]) => Decisions[M] };

/** One that decides by this data. */
export type Deciders = (data: CompletePolicyData) => Promise<Decider>;

/** @throws {ResumeGuardError} `table_invalid`, whose message has the table's name and the JSON Pointer to the wrong place */
export function readTable({ name, document }: NamedTable): Table {
	if (!validateTable(document)) throw invalid(`${name}: ${describe(validateTable.errors?.[0])}`);
	return document;
}

/**
 * The cases of decision tables: the facts of each are a merge patch (RFC 7396) over its table's, its data over its
 * table's and that over `baseline`.
 *
 * @throws {ResumeGuardError} `table_invalid`: a table breaks `schemas/table.json`, a case has no moment, two have one
 *   name, or there is none at all; `data_invalid`: a case's data breaks `schemas/data.json`
 */
export async function readCases(
	tables: readonly NamedTable[],
	baseline: PolicyData,
): Promise<DecisionCase[]> {
	const cases = new Map<string, DecisionCase>();
	for (const table of tables) {
		const { cases: given, facts: shared = {}, data: over = {} } = readTable(table);
		for (const one of given) {
			const name = `${table.name}: ${one.name}`;
			if (cases.has(name)) throw invalid(`${name}: there is another case of that name`);
			const { moment, ...question } = mergePatch(shared, one.facts);
			if (!isMoment(moment)) throw invalid(`${name}: no moment, one of ${MOMENTS.join(", ")}`);
			const data = await readDataOf(name, mergePatch(mergePatch(baseline, over), one.data ?? {}));
			cases.set(name, { name, moment, question, data, want: one.want });
		}
	}
	if (cases.size === 0) throw invalid("no case found");
	return [...cases.values()];
}

// What is answered where nothing was decided.
const UNDECIDED: readonly string[] = ["invalid_facts", "policy_fault"];

/**
 * Asks for a case's decision, and compares each member that is wanted, whole. A case whose facts cannot be decided is
 * not passed, unless it wants that code: what it wants beside it may be right by chance.
 */
export async function runCase(
	{ name, moment, question, data, want }: DecisionCase,
	deciders: Deciders,
): Promise<CaseResult> {
	const decider = await deciders(data);
	const decide = decider[moment] as (question: unknown) => Decision;
	const got = decide(question);
	const members: Json = { ...got };
	const differs = Object.entries(want)
		.filter(([member, value]) => !Object.hasOwn(members, member) || !isSame(members[member], value))
		.map(([member]) => member);
	if (UNDECIDED.includes(got.code) && !Object.hasOwn(want, "code")) differs.push("code");
	return { name, moment, facts: question, want, got, differs, ok: differs.length === 0, code: got.code };
}

/**
 * Reads the cases of tables and runs them all, in order.
 *
 * @throws {ResumeGuardError} as `readCases`, and what `deciders` throws
 */
export async function runTables(
	tables: readonly NamedTable[],
	baseline: PolicyData,
	deciders: Deciders,
): Promise<CaseResult[]> {
	const results: CaseResult[] = [];
	for (const one of await readCases(tables, baseline)) results.push(await runCase(one, deciders));
	return results;
}

/** Each has memory of its own, and tables that nobody knows may have many. */
const KEPT = 100;

/** Creates a decider once for each distinct data, unless there are many: it is most of what a case costs. */
export function decidersByData(create: Deciders): Deciders {
	const created = new Map<string, Promise<Decider>>();
	return (data) => {
		const key = JSON.stringify(data);
		const decider = created.get(key) ?? create(data);
		if (created.size >= KEPT) created.clear();
		created.set(key, decider);
		return decider;
	};
}

/** JSON Merge Patch (RFC 7396). */
export function mergePatch(target: unknown, patch: Json | object): Record<string, unknown> {
	// A Map, as names come from outside.
	const merged = new Map<string, unknown>(Object.entries(isObject(target) ? target : {}));
	for (const [key, value] of Object.entries(patch)) {
		if (value === null) merged.delete(key);
		else merged.set(key, isObject(value) ? mergePatch(merged.get(key), value) : value);
	}
	return Object.fromEntries(merged);
}

async function readDataOf(name: string, merged: Json): Promise<CompletePolicyData> {
	try {
		return await readData(merged as unknown as PolicyData);
	} catch (cause) {
		if (!(cause instanceof ResumeGuardError)) throw cause;
		throw new ResumeGuardError(cause.code, `${name}: ${cause.message}`, { cause });
	}
}

/** Whether two JSON values are the same: members in any order, elements in theirs. */
function isSame(a: unknown, b: unknown): boolean {
	if (Array.isArray(a) || Array.isArray(b)) {
		if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
		return a.every((element, index) => isSame(element, b[index]));
	}
	if (!isObject(a) || !isObject(b)) return a === b;
	const names = Object.keys(a);
	if (names.length !== Object.keys(b).length) return false;
	return names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]));
}

function isMoment(value: unknown): value is Moment {
	return MOMENTS.some((moment) => moment === value);
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(what: string): ResumeGuardError {
	return new ResumeGuardError("table_invalid", `decision tables: ${what}`);
}
