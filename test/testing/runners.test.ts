import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { testTables } from "../../src/testing/index.ts";

// In this very file, as users have it.
await testTables(test, { tables: "test/cases/story-1.json", data: "policies/mcp/data.json" });

const starter = { tables: "templates/policy/tests/tools.json", data: "policies/mcp/data.json" };

interface Ran {
	readonly exitCode: number;
	readonly output: string;
}

/** What the tables' owner writes, run by a runner of its own in a folder of its own. */
async function run(runner: "vitest" | "node:test", options: object): Promise<Ran> {
	const root = process.cwd();
	const folder = mkdtempSync(join(tmpdir(), "runner-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
	const absolute = JSON.stringify(options, (_, value) =>
		typeof value === "string" && /^(?:test|templates|policies)\//.test(value) ? resolve(value) : value,
	);
	const lines = [
		`import { test } from "${runner}";`,
		'import { testTables } from "mcp-resume-guard/testing";',
		`await testTables(test, ${absolute});`,
	];
	const files = {
		"policy.test.mjs": `${lines.join("\n")}\n`,
		"vitest.config.mjs": `export default { resolve: { alias: ${JSON.stringify(alias(root))} } };`,
	};
	for (const [path, content] of Object.entries(files)) {
		mkdirSync(dirname(join(folder, path)), { recursive: true });
		writeFileSync(join(folder, path), content);
	}
	const argv = {
		vitest: ["node_modules/vitest/vitest.mjs", "run"],
		"node:test": ["--import", "tsx", "--test", "--test-reporter=tap", "policy.test.mjs"],
	}[runner];
	const child = spawn(process.execPath, argv, {
		cwd: folder,
		env: {
			...process.env,
			// A test runner that runs in another does not report as it does alone.
			NODE_TEST_CONTEXT: undefined,
			VITEST: undefined,
			NO_COLOR: "1",
			TSX_TSCONFIG_PATH: join(root, "tsconfig.json"),
		},
	});
	const exited = once(child, "exit");
	const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
	const [exitCode] = await exited;
	return { exitCode, output: out + err };
}

function alias(root: string) {
	return { "mcp-resume-guard/testing": join(root, "src/testing/index.ts") };
}

describe.each(["vitest", "node:test"] as const)("under %s", { timeout: 60_000 }, (runner) => {
	const counts = (passed: number, failed: number) =>
		runner === "vitest"
			? new RegExp(`Tests +${failed > 0 ? `${failed} failed \\| ` : ""}${passed} passed`)
			: new RegExp(`# pass ${passed}\\n# fail ${failed}\\n`);

	it("each case is a test", async () => {
		const { exitCode, output } = await run(runner, starter);
		expect(output).toMatch(counts(6, 0));
		expect(exitCode).toBe(0);
	});

	it("a case that fails shows what was asked, wanted and got, and a code that no case reaches has a name", async () => {
		const resources = ["https://other.example.com"];
		const options = { ...starter, data: { resources }, coverage: { custom: ["custom:own"] } };
		const { exitCode, output } = await run(runner, options);
		expect(output).toMatch(counts(1, 6));
		expect(output).toMatch(/tools.json: a token for the server calls fetch/);
		expect(output).toMatch(/decided by: binding_drift/);
		expect(output).toMatch(/≠ "outcome": "proceed" +│ "outcome": "reinitialize"/);
		expect(output).toMatch(/delivery covered.*custom:own/s);
		expect(exitCode).toBe(1);
	});

	it("no case at all fails", async () => {
		const { exitCode, output } = await run(runner, { ...starter, tables: [] });
		expect(output).toMatch(/no case found/);
		expect(exitCode).toBe(1);
	});
});

it("the tables of this repository reach every code", async () => {
	const tests = new Map<string, () => Promise<void>>();
	await testTables((name, one) => tests.set(name, one), {
		tables: "test/cases",
		data: "policies/mcp/data.json",
		coverage: true,
	});
	await tests.get("every decision code is reached by a case")?.();
	expect(tests.size).toBeGreaterThan(800);
});

describe("wrong options", () => {
	const register = () => {};

	it.each<[string, object, RegExp]>([
		["a name that is no option", { ...starter, table: "x" }, /there is no option `table`/],
		["tables that are no path", { ...starter, tables: 1 }, /`tables`/],
		["no tables", { data: starter.data }, /`tables`/],
		["no data", { tables: starter.tables }, /`data`/],
		["coverage that is no object", { ...starter, coverage: "all" }, /`coverage`/],
		["coverage of something else", { ...starter, coverage: { exclude: [] } }, /`exclude`/],
		["an exception that is no code", { ...starter, coverage: { except: ["call covred"] } }, /call covred/],
	])("%s", async (_, options, message) => {
		const misuse = testTables(register, options as unknown as Parameters<typeof testTables>[1]);
		await expect(misuse).rejects.toThrow(message);
		await expect(misuse).rejects.toThrow(TypeError);
	});

	it.each([
		["tables that are not there", { ...starter, tables: "/nowhere" }, "file_unreadable"],
		["a policy that is not there", { ...starter, policy: "/nowhere" }, "file_unreadable"],
		["a policy that is none", { ...starter, policy: "package.json" }, "policy_invalid"],
		["data that is not there", { ...starter, data: "/nowhere" }, "file_unreadable"],
		["a table that is none", { ...starter, tables: "package.json" }, "table_invalid"],
		["a table that is not JSON", { ...starter, tables: "README.md" }, "table_invalid"],
	])("%s", async (_, options, code) => {
		await expect(testTables(register, options)).rejects.toMatchObject({ code });
	});

	it("takes URLs, and several places", async () => {
		const names: string[] = [];
		const url = (path: string) => new URL(`../../${path}`, import.meta.url);
		await testTables((name) => names.push(name), {
			tables: [url(starter.tables), "test/cases/story-1.json"],
			data: url(starter.data),
			policy: url("src/generated/policy.wasm"),
		});
		expect(names.length).toBe(6 + 18);
	});
});
