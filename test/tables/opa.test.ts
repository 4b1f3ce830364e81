import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findOpa, runOpa } from "../../scripts/opa.ts";
import { type PolicyCase, policyCases, readCases } from "../../scripts/tables.ts";
import { decide } from "./run.ts";

const noOpa = await findOpa().then(
	() => false,
	() => true,
);

describe.skipIf(noOpa)("needs OPA: the decision tables, through OPA itself", () => {
	it("decides the same as Wasm and the adapter, in every member, in all cases", async () => {
		const cases = await readCases();
		const asked = policyCases(cases);
		const answers = await evaluate(asked);
		expect(Object.keys(answers)).toEqual(Object.keys(asked).sort());
		for (const one of cases) {
			if (one.name in asked) expect((await decide(one)).decision, one.name).toEqual(answers[one.name]);
		}
	});
});

/** The whole decisions, by the name of the case; all in one run. */
async function evaluate(asked: Record<string, PolicyCase>): Promise<Record<string, unknown>> {
	const [first] = Object.values(asked);
	if (first === undefined) throw new Error("no case to evaluate");
	const overrides = Object.keys(first.data).map((key) => `with data.mcp.${key} as asked.data.${key}`);
	const decision = `data.mcp[asked.moment].decision with input as asked.input ${overrides.join(" ")}`;
	const rule = `answers[name] := decision if {
		some name, asked in data.tables
		decision := ${decision}
	}`;

	const folder = mkdtempSync(join(tmpdir(), "tables-"));
	try {
		writeFileSync(join(folder, "tables.json"), JSON.stringify({ tables: asked }));
		writeFileSync(join(folder, "answers.rego"), `package tables_answers\n\n${rule}\n`);
		const query = "data.tables_answers.answers";
		const printed = await runOpa(["eval", "--format=raw", "--data=policies", `--data=${folder}`, query]);
		return JSON.parse(printed) as Record<string, unknown>;
	} finally {
		rmSync(folder, { recursive: true });
	}
}
