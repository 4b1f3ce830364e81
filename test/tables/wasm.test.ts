import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { policyCases, readCases } from "../../scripts/tables.ts";
import { decide } from "./run.ts";

const cases = await readCases();

describe("the decision tables, through Wasm and the adapter", () => {
	it.each(cases.map((asked) => [asked.name, asked] as const))("%s", async (_, asked) => {
		const { decision, faults } = await decide(asked);
		expect(decision).toEqual(expect.objectContaining(asked.want));
		expect(faults).toHaveLength(decision.code === "policy_fault" ? 1 : 0);
	});
});

test("every case names its time", () => {
	expect(cases.filter(({ question }) => question.now === undefined).map(({ name }) => name)).toEqual([]);
});

test("most cases reach the policy, and the adapter answers the others by itself", () => {
	const reaching = Object.keys(policyCases(cases)).length;
	expect(reaching).toBeGreaterThan(600);
	expect(cases.length - reaching).toBeGreaterThan(100);
});

test("every outcome and code that the schema has for a moment has a case", async () => {
	const decided = await Promise.all(
		cases.map(async (asked) => {
			const { outcome, code } = (await decide(asked)).decision;
			return `${asked.moment} ${outcome} ${code}`;
		}),
	);
	// A policy that is whole leaves nothing undecided, and a POST needs no session id.
	const unreachable = /^\w+ refuse undecided$|^call refuse session_required$/;
	const wanted = codesOfSchema().filter((name) => !unreachable.test(name));
	expect(wanted.filter((name) => !decided.includes(name))).toEqual([]);
	expect(wanted.length).toBeGreaterThan(50);
});

interface Shape {
	readonly oneOf?: readonly { readonly $ref: string }[];
	readonly properties?: {
		readonly outcome: { readonly const: string };
		readonly code: { readonly enum?: string[]; readonly anyOf?: readonly { readonly enum?: string[] }[] };
	};
}

/** `<moment> <outcome> <code>`, all that `schemas/decision.json` allows but custom codes. */
function codesOfSchema(): string[] {
	const { $defs } = JSON.parse(readFileSync("schemas/decision.json", "utf8")) as {
		$defs: Record<string, Shape>;
	};
	return ["Session", "Call", "Resume", "Delivery"].flatMap((moment) =>
		($defs[`${moment}Decision`]?.oneOf ?? []).flatMap(({ $ref }) => {
			const { outcome, code } = $defs[$ref.slice("#/$defs/".length)]?.properties ?? {};
			const codes = code?.enum ?? code?.anyOf?.flatMap((option) => option.enum ?? []) ?? [];
			return codes.map((name) => `${moment.toLowerCase()} ${outcome?.const} ${name}`);
		}),
	);
}
