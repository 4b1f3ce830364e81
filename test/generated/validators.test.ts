import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { PolicyData } from "../../src/generated/types.ts";
import { validateData } from "../../src/generated/validators.js";

const path = "src/generated/validators.js";

test("the validators import nothing", () => {
	expect(readFileSync(path, "utf8")).not.toMatch(/^(import|export .* from)\b/m);
});

test("the validators run where no code can be made from strings", () => {
	const program = `import { validateData } from "./${path}"; process.exit(validateData({ resources: ["a"] }) ? 0 : 1)`;
	const args = ["--disallow-code-generation-from-strings", "--input-type=module", "--eval", program];
	expect(spawnSync(process.execPath, args, { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
});

test("policy data is completed with every default of its schema", () => {
	const schema = JSON.parse(readFileSync("schemas/data.json", "utf8")) as {
		properties: Record<string, object>;
	};
	const data = { resources: ["https://mcp.example.com"] };
	expect(validateData(data)).toBe(true);
	expect(Object.keys(data).sort()).toEqual(Object.keys(schema.properties).sort());
});

test("defaults are not shared between two values", () => {
	const first: PolicyData = { resources: ["a"] };
	const second: PolicyData = { resources: ["b"] };
	validateData(first);
	validateData(second);
	expect(first.session_need).toEqual({ aud: [], scope: [] });
	expect(first.session_need).not.toBe(second.session_need);
});

test("a prototype's properties are no data", () => {
	expect(validateData(JSON.parse('{"resources": ["a"], "__proto__": {"profile": "strict"}}'))).toBe(false);
	expect(validateData.errors).toMatchObject([
		{ instancePath: "", params: { additionalProperty: "__proto__" } },
	]);
});
