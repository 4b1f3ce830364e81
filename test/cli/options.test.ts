import { readFileSync } from "node:fs";
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
		...["decide", "explain", "replay"].flatMap((command): [string, () => string[], RegExp][] => {
			const args = command === "replay" ? [command, "-"] : [command];
			const policy = ["--policy", "src/generated/policy.wasm"];
			const data = ["--data", "policies/mcp/data.json"];
			const key = () => ["--verification-key", temporaryFile("key.pem", "s3cret")];
			return [
				[
					`${command}: a key for Wasm`,
					() => [...args, ...policy, ...key()],
					/policy\.wasm is no bundle, so that/,
				],
				[
					`${command}: a key for no policy`,
					() => [...args, ...data, ...key()],
					/is no bundle, so that there is no/,
				],
				[
					`${command}: a key that is not there, for no bundle`,
					() => [...args, ...data, "--verification-key", missing],
					/the key \S+ cannot be read: ENOENT/,
				],
				[
					`${command}: a key that is to be skipped`,
					() => [...args, ...policy, "--skip-verify", ...key()],
					/--skip-verify and --verification-key/,
				],
			];
		}),
		["a question that is not there", () => ["explain", missing], /the question \S+ cannot be read: ENOENT/],
		[
			"a folder as a log",
			() => ["replay", "docs", "--data", "policies/mcp/data.json"],
			/the log docs cannot be read/,
		],
		["a page that has no place", () => ["explain", "--html", missing], /found cannot be written: ENOENT/],
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

test("says its version", async () => {
	const { version } = JSON.parse(readFileSync("package.json", "utf8"));
	expect(await runOn([], "--version")).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: "" });
});

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
