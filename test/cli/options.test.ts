import { describe, expect, test } from "vitest";
import { moments } from "./questions.ts";
import { dataFile, decide, runOn, temporaryFile } from "./support.ts";

const missing = "/nowhere/to/be/found";
// Eight bytes: the header of WebAssembly, and nothing else.
const emptyModule = Uint8Array.of(0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00);

describe("says what is wrong in one line, answers nothing, and exits with 2", () => {
	test.each<[name: string, argv: () => string[], message: RegExp]>([
		["an unknown option", () => ["decide", "--verbose"], /unknown option '--verbose'/],
		["an option without its value", () => ["decide", "--data"], /argument missing/],
		["an argument", () => ["decide", "facts.jsonl"], /too many arguments/],
		["an unknown command", () => ["serve"], /unknown command 'serve'/],
		[
			"data that is not there",
			() => ["decide", "--data", missing],
			/the policy data \S+ cannot be read: ENOENT/,
		],
		["data that is not JSON", () => ["decide", "--data", temporaryFile("d", "{")], /is not JSON/],
		[
			"data that breaks its schema",
			() => ["decide", "--data", dataFile({ clock_skew: "30" })],
			/\/clock_skew/,
		],
		[
			"a policy that is not there",
			() => ["decide", "--policy", missing],
			/the policy \S+ cannot be read: ENOENT/,
		],
		["a policy that is not Wasm", () => ["decide", "--policy", temporaryFile("p", "x")], /not WebAssembly/],
		[
			"Wasm that is no policy",
			() => ["decide", "--policy", temporaryFile("p", emptyModule)],
			/cannot be loaded/,
		],
		[
			"a policy without its entrypoints",
			() => ["decide", "--policy", "bench/floor.wasm"],
			/has no entrypoint/,
		],
	])("%s", async (_, argv, message) => {
		const result = await runOn([`${JSON.stringify(moments.call)}\n`], ...argv());
		expect(result.exitCode).toBe(2);
		expect(result.stdout).toBe("");
		expect(result.stderr).toMatch(message);
		expect(result.stderr.trimEnd().split("\n")).toHaveLength(1);
	});
});

test("without a command it says what there is, and exits with 2", async () => {
	const { exitCode, stdout, stderr } = await runOn([]);
	expect(exitCode).toBe(2);
	expect(stdout).toBe("");
	expect(stderr).toMatch(/^Usage: mcp-resume-guard /);
	expect(stderr).toContain("decide");
});

test.each([[["--help"]], [["decide", "--help"]], [["help", "decide"]]])(
	"%j is help, and exits with 0",
	async (argv) => {
		const { exitCode, stdout, stderr } = await runOn([], ...argv);
		expect(exitCode).toBe(0);
		expect(stdout).toMatch(/^Usage: mcp-resume-guard /);
		expect(stderr).toBe("");
	},
);

test("the help of decide names its options and exit codes", async () => {
	const { stdout } = await runOn([], "decide", "--help");
	for (const part of ["--policy <file>", "--data <file>", "Exit code: 0"]) expect(stdout).toContain(part);
});

test.each<[exitCode: number, name: string, lines: unknown[]]>([
	[0, "no lines", []],
	[0, "decisions, refusals among them", [moments.call, { moment: "call" }]],
	[1, "an error among decisions", [moments.call, {}, moments.call]],
])("exits with %i after %s", async (exitCode, _, lines) => {
	expect((await decide(lines)).exitCode).toBe(exitCode);
});
