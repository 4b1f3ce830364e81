import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { createResumeGuard } from "../../src/index.ts";
import { createKeys, noOpa, openWorkshop } from "./support.ts";

const workshop = openWorkshop();
afterAll(workshop.remove);

const story = JSON.parse(readFileSync("test/cases/story-1.json", "utf8"));
const other = JSON.parse(readFileSync("test/cases/story-2.json", "utf8"));
const keys = createKeys("ES256");
let written = 0;

async function load(tests: unknown, files: Readonly<Record<string, string>> = {}) {
	const manifest = { roots: ["mcp"], metadata: { mcp_resume_guard: { tests } } };
	const bundle = await workshop.build({ manifest, files, signing: keys });
	written += 1;
	const source = workshop.write(`${written}.tar.gz`, bundle);
	const { publicKey: key, algorithm } = keys;
	return createResumeGuard({ bundle: { source, verification: { keys: { default: { key, algorithm } } } } });
}

describe.skipIf(noOpa)("needs OPA: a bundle with decision tables of its own", () => {
	it("is good if it passes them", async () => {
		await expect(load({ "story-1": story, "story-2": other })).resolves.toBeDefined();
	});

	it("is asked on its own data", async () => {
		const narrow = { "mcp/coverage/data.json": "{}" };
		const [one] = story.cases;
		await expect(load({ story: { ...story, data: {}, cases: [one] } })).resolves.toBeDefined();
		const covered = story.cases.filter(({ want }: { want: { code?: string } }) => want.code === "covered");
		expect(covered.length).toBeGreaterThan(0);
		// What the wider token covers it covers no more.
		const data = JSON.parse(readFileSync("policies/mcp/data.json", "utf8"));
		const files = { ...narrow, "mcp/data.json": JSON.stringify({ ...data, coverage: undefined }) };
		await expect(load({ story: { ...story, cases: covered } }, files)).rejects.toMatchObject({
			code: "bundle_tests_failed",
			message: expect.stringMatching(/^the bundle fails its own tables: story: /),
		});
	});

	it("is asked on its own Wasm", async () => {
		const refusing = `package mcp.custom

refusal contains {"code": "custom:closed", "outcome": "refuse"}
`;
		const failed = load({ story }, { "mcp/custom/custom.rego": refusing });
		await expect(failed).rejects.toMatchObject({ code: "bundle_tests_failed" });
		// No more than their names: facts have claims in them.
		await expect(failed).rejects.not.toThrow(/alice/);
	});

	it.each<[string, string, unknown]>([
		["a table that is none", "table_invalid", { broken: { title: "x" } }],
		["a table without cases", "table_invalid", { empty: { title: "x", cases: [] } }],
		[
			"a case without a moment",
			"table_invalid",
			{ x: { title: "x", cases: [{ name: "y", facts: {}, want: { code: "covered" } }] } },
		],
		["data of a case that breaks its schema", "data_invalid", { x: { ...story, data: { profile: "none" } } }],
		["tables that are none", "bundle_invalid", [story]],
	])("is refused for %s", async (_, code, tests) => {
		await expect(load(tests)).rejects.toMatchObject({ name: "ResumeGuardError", code });
	});
});
