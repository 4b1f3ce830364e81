import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
	compilePolicyFolder,
	effectiveRules,
	ownRules,
	readPolicyFolder,
	regoTests,
} from "../../src/cli/policy-folder.ts";
import { noOpa, noPinnedOpa, policyFolder, temporaryFolder, withOpa, withoutOpa } from "./folder.ts";

const shipped = readFileSync("policies/mcp/custom/custom.rego", "utf8");
const rule =
	'package mcp.custom\n\nrefusal contains {"code": "custom:x", "outcome": "refuse"} if input.now < 0\n';

const pathsOf = (files: readonly { readonly path: string }[]) => files.map(({ path }) => path);

describe("which rules are its own", () => {
	it.each<[string, Record<string, string>, string[]]>([
		["none, as init makes it", {}, []],
		["a rule", { "mcp/custom/own.rego": rule }, ["mcp/custom/own.rego"]],
		["wherever it is", { "own.rego": rule, "tests/b.rego": rule }, ["own.rego", "tests/b.rego"]],
		["not what this package has, too", { "mcp/custom/custom.rego": shipped }, []],
		["not for its line ends", { "mcp/custom/custom.rego": shipped.replaceAll("\n", "\r\n") }, []],
		[
			"what this package has otherwise",
			{ "mcp/custom/custom.rego": `${shipped}# x\n` },
			["mcp/custom/custom.rego"],
		],
		[
			"comments in its place",
			{ "mcp/custom/custom.rego": "# x\npackage mcp.custom\n" },
			["mcp/custom/custom.rego"],
		],
		["not comments alone", { "a.rego": "# a\n\n  # b\npackage mcp.a # c\n\n\t# d\n" }, ["a.rego"]],
		["not a package alone", { "a.rego": "\npackage mcp.custom\n\n# refusal contains x\n" }, []],
		["a rule after what is no line end in Rego", { "a.rego": `package a\n# b\u2028${rule}` }, ["a.rego"]],
		["a rule in a line of a carriage return", { "a.rego": "package a\n# b\rx := 1\n" }, ["a.rego"]],
		["a string that looks like comments", { "a.rego": "package a\n\nx := `\n# y\n`\n" }, ["a.rego"]],
		["not tests", { "mcp/custom/own_test.rego": rule }, []],
		["not what is hidden or installed", { ".a/b.rego": rule, "node_modules/c/d.rego": rule }, []],
	])("%s", async (_, files, own) => {
		expect(pathsOf(await ownRules(await readPolicyFolder(await policyFolder(files))))).toEqual(own);
	});
});

it("all rules that decide are the package's, with its own in their place or beside them", async () => {
	const folder = await readPolicyFolder(
		await policyFolder({ "mcp/resume/resume.rego": "package mcp.resume\n", "x/y.rego": "package x\n" }),
	);
	const rules = await effectiveRules(folder);
	expect(rules.find(({ path }) => path === "mcp/resume/resume.rego")?.text).toBe("package mcp.resume\n");
	expect(pathsOf(rules)).toEqual(
		expect.arrayContaining(["mcp/custom/custom.rego", "mcp/call/call.rego", "x/y.rego"]),
	);
	expect(pathsOf(rules).filter((path) => path.endsWith("_test.rego"))).toEqual([]);
	expect(pathsOf(regoTests(folder))).toEqual(["mcp/custom/refusals_test.rego"]);
});

describe("the Wasm", () => {
	it("is that of this package, where no rule is its own", async () => {
		withoutOpa();
		const wasm = await compilePolicyFolder(await readPolicyFolder(await policyFolder()));
		expect(Buffer.from(wasm).equals(readFileSync("src/generated/policy.wasm"))).toBe(true);
	});

	it("needs OPA otherwise", async () => {
		withoutOpa();
		const folder = await readPolicyFolder(await policyFolder({ "a.rego": rule }));
		await expect(compilePolicyFolder(folder)).rejects.toMatchObject({ code: "opa_missing" });
	});

	// The pinned version makes the same bytes of the same rules, wherever they lie.
	it.skipIf(noPinnedOpa)("needs OPA: is what this package's own build makes", async () => {
		await withOpa({ exact: true });
		const folder = await readPolicyFolder(
			await policyFolder({ "mcp/custom/custom.rego": `${shipped}# x\n`, "mcp/custom/refusals.rego": null }),
		);
		const wasm = await compilePolicyFolder(folder);
		expect(Buffer.from(wasm).equals(readFileSync("src/generated/policy.wasm"))).toBe(true);
	});

	it.skipIf(noOpa)("needs OPA: says why it cannot be made", async () => {
		await withOpa();
		const folder = await readPolicyFolder(
			await policyFolder({ "a.rego": "package a\n\nx := time.now_ns()\n" }),
		);
		await expect(compilePolicyFolder(folder)).rejects.toMatchObject({
			code: "policy_invalid",
			message: expect.stringMatching(/policies\/a\.rego:3: .*time\.now_ns/),
		});
	});
});

it("follows links to files and folders, and not in a circle", async () => {
	const elsewhere = temporaryFolder();
	const dir = join(temporaryFolder(), "policy");
	mkdirSync(join(dir, "mcp"), { recursive: true });
	writeFileSync(join(elsewhere, "data.json"), "{}");
	writeFileSync(join(elsewhere, "own.rego"), rule);
	symlinkSync(join(elsewhere, "data.json"), join(dir, "mcp/data.json"));
	symlinkSync(elsewhere, join(dir, "mcp/custom"));
	for (const name of ["a", "b", "c"]) symlinkSync(dir, join(dir, name));
	symlinkSync("/nowhere", join(dir, "d"));
	const folder = await readPolicyFolder(dir);
	expect(folder.data.text).toBe("{}");
	expect(pathsOf(folder.regoFiles)).toEqual(["mcp/custom/own.rego"]);
});
