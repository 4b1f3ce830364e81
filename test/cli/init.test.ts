import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { noOpa, policyFolder, temporaryFolder, withOpa, withoutOpa } from "./folder.ts";
import { runOn } from "./support.ts";

const files = [
	"README.md",
	"github-actions.yaml",
	"mcp/custom/refusals.rego",
	"mcp/custom/refusals_test.rego",
	"mcp/data.json",
	"tests/tools.json",
];

function filesOf(folder: string): string[] {
	return readdirSync(folder, { recursive: true, withFileTypes: true })
		.filter((entry) => entry.isFile())
		.map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
		.sort();
}

it("writes a folder that says what is in it, also where the folders above are not there yet", async () => {
	const folder = join(temporaryFolder(), "a", "policy");
	const { exitCode, stdout } = await runOn([], "init", folder);
	expect(filesOf(folder)).toEqual(files);
	for (const file of files) expect(stdout).toContain(join(folder, file));
	expect(exitCode).toBe(0);
	expect(readFileSync(join(folder, "README.md"), "utf8").trim().split("\n")).toHaveLength(5);
});

it("lists it as JSON", async () => {
	const dir = temporaryFolder();
	const { stdout } = await runOn([], "init", dir, "--json");
	expect(JSON.parse(stdout)).toEqual({ dir, created: files });
});

it("the data is that of this package", async () => {
	const folder = await policyFolder();
	expect(readFileSync(join(folder, "mcp/data.json"), "utf8")).toBe(
		readFileSync("policies/mcp/data.json", "utf8"),
	);
});

it("the CI snippet has the folder and the version", async () => {
	const { version } = JSON.parse(readFileSync("package.json", "utf8"));
	const folder = join(temporaryFolder(), 'it"s: {here}');
	await runOn([], "init", folder);
	const snippet = readFileSync(join(folder, "github-actions.yaml"), "utf8");
	expect(snippet).toContain(String.raw`POLICY: "it\"s: {here}"`);
	expect(snippet).toContain(`npx --yes mcp-resume-guard@${version} check "$POLICY" --strict`);
	expect(snippet).not.toMatch(/VERSION|DIR\b/);
});

describe("overwrites nothing", () => {
	it.each(files)("%s", async (file) => {
		const folder = temporaryFolder();
		mkdirSync(join(folder, file, ".."), { recursive: true });
		writeFileSync(join(folder, file), "mine");
		const { exitCode, stderr, stdout } = await runOn([], "init", folder, "--json");
		expect(stderr).toContain(`${join(folder, file)}: there already`);
		expect(JSON.parse(stdout)).toMatchObject({ error: { code: "file_unwritable" } });
		expect(exitCode).toBe(2);
		expect(filesOf(folder)).toEqual([file]);
		expect(readFileSync(join(folder, file), "utf8")).toBe("mine");
	});

	it("nor does it write through a link that leads nowhere", async () => {
		const folder = temporaryFolder();
		const target = join(folder, "elsewhere");
		symlinkSync(target, join(folder, "README.md"));
		const { exitCode } = await runOn([], "init", folder);
		expect(exitCode).toBe(2);
		expect(existsSync(target)).toBe(false);
	});

	it("nor is a file a folder", async () => {
		const file = join(temporaryFolder(), "policy");
		writeFileSync(file, "mine");
		const { exitCode, stderr } = await runOn([], "init", file);
		expect(stderr).toContain("cannot be written");
		expect(exitCode).toBe(2);
	});
});

describe("what it writes is good", () => {
	it("without OPA", async () => {
		withoutOpa();
		const folder = await policyFolder();
		expect(await runOn([], "check", folder, "--strict")).toMatchObject({ exitCode: 0 });
		expect(await runOn([], "test", folder)).toMatchObject({ exitCode: 0 });
	});

	it.skipIf(noOpa)("needs OPA: with OPA", async () => {
		await withOpa();
		const folder = await policyFolder();
		const checked = await runOn([], "check", folder, "--strict");
		expect(checked).toMatchObject({ exitCode: 0, stdout: "0 errors, 0 warnings\n", stderr: "" });
		const tested = await runOn([], "test", folder);
		expect(tested).toMatchObject({ exitCode: 0, stderr: "" });
		expect(tested.stdout).toContain("pass mcp.refusals_test.test_a_young_session_goes_on");
	});

	it.skipIf(noOpa)("needs OPA: the examples in its comments, too", async () => {
		await withOpa();
		const folder = await policyFolder();
		for (const name of ["refusals", "refusals_test"]) {
			const file = join(folder, `mcp/custom/${name}.rego`);
			// The example is the last thing that is commented out.
			const text = readFileSync(file, "utf8");
			const start = /^# (?:refusal contains|test_)/m.exec(text)?.index ?? -1;
			const [head, example] = [text.slice(0, start), text.slice(start).replace(/^# ?(?!package)/gm, "")];
			const [rule = "", end = ""] = example.split(/^(?=package )/m);
			writeFileSync(file, end === "" ? head + rule : `${end}\n${rule}`);
		}
		expect(await runOn([], "check", folder, "--strict")).toMatchObject({ exitCode: 0 });
		const { stdout, exitCode } = await runOn([], "test", folder, "--coverage");
		expect(stdout).toContain("pass mcp.refusals_test.test_a_session_of_nine_hours_is_too_old");
		expect(stdout).toMatch(/never, custom: session_too_old/);
		expect(stdout).toMatch(/refusals.rego: 100.0 %/);
		expect(exitCode).toBe(0);
	});
});
