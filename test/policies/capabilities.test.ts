import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPolicy } from "@open-policy-agent/opa-wasm";
import { describe, expect, test } from "vitest";
import { buildWasm } from "../../scripts/build-wasm.ts";
import { findOpa, runOpa } from "../../scripts/opa.ts";
import expressions from "./builtins.json" with { type: "json" };

const capabilities = JSON.parse(readFileSync("tools/capabilities.json", "utf8")) as {
	builtins: { name: string }[];
};
const names = capabilities.builtins.map(({ name }) => name);

test("every builtin that policies may use has an example", () => {
	expect(Object.keys(expressions)).toEqual(names);
});

test.each([
	"sprintf",
	"time.now_ns",
	"io.jwt.decode",
	"semver.compare",
	"object.subset",
	"http.send",
	"rand.intn",
])("policies may not use %s", (name) => {
	expect(names).not.toContain(name);
});

const noOpa = await findOpa({ exact: true }).then(
	() => false,
	() => true,
);

describe.skipIf(noOpa)("needs OPA: a builtin answers in Wasm as in OPA", async () => {
	const examples = Object.entries(expressions).flatMap(([name, list]) =>
		list.map((expression) => ({ name, expression })),
	);
	const { inOpa, inWasm } = noOpa
		? { inOpa: {}, inWasm: {} }
		: await evaluate(examples.map(({ expression }) => expression));

	test.each(examples.map((example, index) => ({ ...example, rule: `rule_${index}` })))(
		"$name: $expression",
		({ rule }) => {
			expect(inOpa).toHaveProperty(rule);
			expect(inWasm).toHaveProperty(rule, inOpa[rule]);
		},
	);
});

type Answers = Record<string, unknown>;

async function evaluate(list: readonly string[]): Promise<{ inOpa: Answers; inWasm: Answers }> {
	const folder = mkdtempSync(join(tmpdir(), "builtins-"));
	try {
		const policy = join(folder, "examples.rego");
		const rules = list.map((expression, index) => `rule_${index} := ${expression}`);
		writeFileSync(policy, ["package examples", ...rules].join("\n"));
		const evaluated = await runOpa(["eval", "-f", "json", "-d", policy, "data.examples"], { exact: true });
		const { result } = JSON.parse(evaluated) as { result: [{ expressions: [{ value: Answers }] }] };
		const options = ["--capabilities", "tools/capabilities.json", "-e", "examples"];
		const wasm = await loadPolicy(await buildWasm([...options, policy]));
		const [{ result: inWasm }] = wasm.evaluate({}, "examples") as [{ result: Answers }];
		return { inOpa: result[0].expressions[0].value, inWasm };
	} finally {
		rmSync(folder, { recursive: true });
	}
}
