import { isUtf8 } from "node:buffer";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { ReplayResult } from "../../src/cli/replay-report.ts";
import { createResumeGuard, type Decision, type Moment, type ResumeGuard } from "../../src/index.ts";
import { temporaryFolder, withoutOpa } from "../cli/folder.ts";
import { events, moments, payload, resume, search } from "../cli/questions.ts";
import { type Result, readLines, runOn, toLines } from "../cli/support.ts";
import { mutatedJson, mutatedText } from "./json.ts";
import { options, RUNS, seed } from "./options.ts";

// What is fed into the command line: lines, logs and arguments.

const DATA = "policies/mcp/data.json";
const questions: readonly object[] = [...Object.values(moments), resume(payload(search), events)];
const NEW_LINE = 0x0a;

let guard: ResumeGuard;
beforeAll(async () => {
	guard = await createResumeGuard({ data: DATA, onFault: () => {} });
});

/** What a terminal shows as it is, and of a fault of the program itself. */
function expectHarmless({ stdout, stderr }: Result): void {
	for (const output of [stdout, stderr]) {
		expect(output.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
		expect(output).not.toMatch(
			/\n\s+at |Maximum call stack|is not a function|Cannot (?:read|convert|destructure)/,
		);
	}
}

/** Bytes without a line feed: whole, nearly whole, long, or no text at all. */
function linesOf(bases: readonly object[]): fc.Arbitrary<Buffer> {
	const odd = fc.constantFrom(
		"\u2028",
		"\u2029",
		"\0",
		"\u0085",
		"\u001b[2J",
		"\u009b",
		"\ufeff",
		"\r",
		"\t",
	);
	return fc
		.oneof(
			{ weight: 3, arbitrary: fc.constantFrom(...bases).map((base) => JSON.stringify(base)) },
			{ weight: 8, arbitrary: fc.constantFrom(...bases).chain(mutatedJson) },
			{
				weight: 2,
				arbitrary: fc
					.tuple(fc.constantFrom(...bases), odd)
					.map(([base, character]) => JSON.stringify(base).replaceAll("alice", `al${character}ice`)),
			},
			{ weight: 1, arbitrary: odd },
			{ weight: 1, arbitrary: fc.nat({ max: 300_000 }).map((length) => "x".repeat(length)) },
			{ weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
			{
				weight: 2,
				arbitrary: fc
					.tuple(fc.constantFrom(...bases), fc.nat(), fc.integer({ min: 0x80, max: 0xff }))
					.map(([base, at, byte]) => {
						const bytes = Buffer.from(JSON.stringify(base));
						bytes[at % bytes.length] = byte;
						return bytes;
					}),
			},
		)
		.map((line) => Buffer.from(line as string).filter((byte) => byte !== NEW_LINE))
		.map((line) => Buffer.from(line));
}

/** The same bytes in chunks that end anywhere. */
function chunked(bytes: Buffer, ends: readonly number[]): Buffer[] {
	const at = [0, ...ends.map((end) => end % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
	return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const inputs = (bases: readonly object[]) =>
	fc.record({
		lines: fc.array(linesOf(bases), { maxLength: 8 }),
		ends: fc.array(fc.nat(), { maxLength: 6 }),
		isEnded: fc.boolean(),
	});

function bytesOf(lines: readonly Buffer[], isEnded: boolean): Buffer {
	const bytes = Buffer.concat(lines.flatMap((line) => [line, Buffer.of(NEW_LINE)]));
	// A last line that is empty would be none.
	return isEnded || lines.at(-1)?.length === 0 ? bytes : bytes.subarray(0, -1);
}

interface LineAnswer {
	readonly error?: { readonly code: string; readonly message: string };
	readonly code?: string;
}

/** What the line has to be answered with. */
function expectedOf(line: Buffer): object {
	const error = (message: unknown) => ({ error: { code: "invalid_line", message } });
	if (!isUtf8(line)) return error("not UTF-8");
	let question: unknown;
	try {
		question = JSON.parse(line.toString());
	} catch {
		return error("not JSON");
	}
	if (typeof question !== "object" || question === null || Array.isArray(question))
		return error("not an object");
	const { moment } = question as { moment?: unknown };
	if (typeof moment !== "string" || !Object.hasOwn(moments, moment)) {
		return error("no moment: one of session, call, resume, delivery");
	}
	return guard[moment as Moment](question as never);
}

test("each line of decide gets the guard's answer or its error, in order, and nothing else comes", async () => {
	await fc.assert(
		fc.asyncProperty(inputs(questions), async ({ lines, ends, isEnded }) => {
			const result = await runOn(chunked(bytesOf(lines, isEnded), ends), "decide");
			const answers = readLines(result.stdout) as LineAnswer[];
			expect(answers).toEqual(lines.map((line) => JSON.parse(JSON.stringify(expectedOf(line)))));
			expect(result.exitCode).toBe(answers.some(({ error }) => error !== undefined) ? 1 : 0);
			const faults = answers.filter(({ code }) => code === "policy_fault").length;
			expect(result.stderr.split("\n")).toHaveLength(faults + 1);
			// A policy that runs out of its stack says so, in its line.
			expectHarmless({ ...result, stderr: result.stderr.replaceAll("Maximum call stack size exceeded", "") });
		}),
		options,
	);
}, 120_000);

test("the program itself, too, and it ends as it says", async () => {
	const lines = fc.sample(linesOf(questions), { numRuns: RUNS, seed });
	const child = spawn(process.execPath, ["--import", "tsx", "src/cli/main.ts", "decide"]);
	onTestFinished(() => {
		child.kill();
	});
	child.stdin.on("error", () => {});
	child.stdin.end(bytesOf(lines, true));
	const [stdout, exit] = await Promise.all([text(child.stdout), once(child, "exit"), text(child.stderr)]);
	expect(readLines(stdout), `FUZZ_SEED=${seed}`).toHaveLength(lines.length);
	expect(exit).toEqual([1, null]);
}, 60_000);

describe("replay", () => {
	const recordOf = (question: object): object => {
		const { moment, ...asked } = question as { moment: Moment };
		const result: Decision = guard[moment](asked as never);
		return {
			decision_id: "d1",
			path: `mcp/${moment}/decision`,
			input: question,
			result,
			revision: guard.revision,
			timestamp: "2026-11-30T00:53:20Z",
			masked: ["/input/presented/sub"],
			custom: { input: "whole" },
		};
	};

	async function replay(log: readonly Buffer[]): Promise<ReplayResult> {
		const result = await runOn(log, "replay", "-", "--data", DATA, "--json");
		expectHarmless(result);
		expect(result.stderr).toBe("");
		const [report] = readLines(result.stdout) as ReplayResult[];
		if (report === undefined) throw new Error("no report");
		expect(report.exit).toBe(result.exitCode);
		const told = await runOn(log, "replay", "-", "--data", DATA);
		expectHarmless(told);
		expect([told.exitCode, told.stderr]).toEqual([result.exitCode, ""]);
		expect(told.stdout).not.toMatch(/NaN|\[object/);
		return report;
	}

	const countOf = (report: ReplayResult) =>
		report.replayed +
		report.notAsked +
		report.shadow +
		report.other +
		report.notReplayable.count +
		report.unreadable.count;

	test("counts each line of a log once, whatever is in it, and fails for none", async () => {
		const records = questions.map(recordOf);
		await fc.assert(
			fc.asyncProperty(inputs(records), async ({ lines, ends, isEnded }) => {
				// What begins as an array or as gzip is read as that.
				const all = [Buffer.from(JSON.stringify(records[0])), ...lines];
				const report = await replay(chunked(bytesOf(all, isEnded), ends));
				const filled = all.filter((line) => !isUtf8(line) || line.toString().trim() !== "");
				expect(countOf(report)).toBe(filled.length);
			}),
			options,
		);
	}, 120_000);

	test("says of any bytes what can be said", async () => {
		const array = JSON.stringify(questions.map(recordOf));
		const logs = fc.oneof(
			mutatedText(array).map((log) => Buffer.from(log)),
			mutatedJson(questions.map(recordOf)).map((log) => Buffer.from(log)),
			fc.tuple(fc.constant(gzipSync(array)), fc.nat(), fc.nat({ max: 255 })).map(([zipped, at, byte]) => {
				const log = Buffer.from(zipped);
				log[at % log.length] = byte;
				return log;
			}),
			fc.nat().map((end) => gzipSync(array).subarray(0, end % array.length)),
			fc.uint8Array({ maxLength: 200 }).map((log) => Buffer.from(log)),
		);
		await fc.assert(
			fc.asyncProperty(logs, fc.array(fc.nat(), { maxLength: 4 }), async (log, ends) => {
				await replay(chunked(log, ends));
			}),
			options,
		);
	}, 120_000);

	test.each<[string, unknown]>([
		["text", "7"],
		["an object", {}],
		["a number beyond all events", 1e308],
	])("takes %s in the place of how many events were delivered for none", async (_, deliver) => {
		const refused = { outcome: "refuse", code: "custom:x", deliver };
		const record = { ...recordOf(resume(payload(search), events.slice(0, 2))), result: refused };
		const report = await replay([Buffer.from(toLines([record]))]);
		expect(report.changes).toMatchObject([{ change: "passes", events: 2 }]);
	});
});

describe("arguments", () => {
	const hostile = fc.oneof(
		fc.constantFrom(
			"\u001b[2J",
			"\u009b31m\u2028\u202e",
			"--\u001b[2J",
			"a\0b",
			"-",
			"--",
			"",
			"-x",
			"--__proto__",
			"--constructor=1",
			"constructor",
			"x".repeat(5_000),
			"NaN",
			"-1",
			"1e9",
			"\ud800",
			"%s%d",
		),
		fc.string({ unit: "binary", maxLength: 8 }),
	);
	const words = fc.oneof(
		{
			weight: 4,
			arbitrary: fc.constantFrom(
				"init",
				"check",
				"test",
				"build",
				"inspect",
				"decide",
				"explain",
				"replay",
				"help",
			),
		},
		{
			weight: 6,
			arbitrary: fc.constantFrom(
				"--policy",
				"--data",
				"--json",
				"--html",
				"--limit",
				"--skip-verify",
				"--verification-key",
				"--verification-key-id",
				"--signing-alg",
				"--scope",
				"--sign",
				"--key-id",
				"-o",
				"--output",
				"--revision",
				"--sequence",
				"--no-tests",
				"--junit",
				"--filter",
				"--help",
				"--version",
			),
		},
		{
			weight: 6,
			arbitrary: fc.constantFrom(
				"policy",
				"data.json",
				"policy.wasm",
				"question.json",
				"log.jsonl",
				".",
				"none",
				"5",
			),
		},
		{ weight: 4, arbitrary: hostile },
	);
	// Whatever is written stays in the folder of the test.
	const within = (argument: string) => argument.replaceAll("/", "_").replaceAll("..", "__");

	test("of any kind end in an answer or a message, and with a code that is documented", async () => {
		withoutOpa();
		const before = process.cwd();
		const folder = temporaryFolder();
		await runOn([], "init", join(folder, "policy"));
		copyFileSync(DATA, join(folder, "data.json"));
		copyFileSync("src/generated/policy.wasm", join(folder, "policy.wasm"));
		writeFileSync(join(folder, "question.json"), JSON.stringify(moments.call));
		writeFileSync(join(folder, "log.jsonl"), "{}\n");
		const keeps = Object.fromEntries(
			readdirSync(folder)
				.filter((name) => name !== "policy")
				.map((name) => [name, readFileSync(join(folder, name))]),
		);
		onTestFinished(() => process.chdir(before));
		process.chdir(folder);
		await fc.assert(
			fc.asyncProperty(fc.array(words.map(within), { maxLength: 7 }), async (argv) => {
				// An output may have been given one of these names.
				for (const [name, content] of Object.entries(keeps)) writeFileSync(name, content);
				const result = await runOn([`${JSON.stringify(moments.call)}\n`], ...argv);
				expectHarmless(result);
				expect([0, 1, 2]).toContain(result.exitCode);
				expect(result.stdout + result.stderr).not.toBe("");
				if (result.exitCode === 2 && argv[0] !== "replay") expect(result.stderr).not.toBe("");
			}),
			options,
		);
	}, 120_000);

	test.each([[["--\u001b[2J\u009b"]], [["\u001b[2J\u2028"]], [["replay", "-", "--limit", "\u202e\u0007"]]])(
		"%j: what is wrong with them is said without their control characters",
		async (argv) => {
			const result = await runOn([], ...argv);
			expectHarmless(result);
			expect(result).toMatchObject({
				exitCode: 2,
				stdout: "",
				stderr: expect.stringMatching(/^error: .*\\u/),
			});
		},
	);

	test.each(["init", "check", "test", "build", "inspect", "explain"])(
		"%s says as JSON what it cannot do, without control characters",
		async (command) => {
			const result = await runOn([], command, "none\u009b31m\u2028\u202e\0", "--json");
			expectHarmless(result);
			expect(result.exitCode).toBe(2);
			expect(readLines(result.stdout)).toMatchObject([
				{ error: { message: expect.stringContaining("\u009b") } },
			]);
		},
	);
});

test("explain refuses a question that is too deep to be walked, in a sentence", async () => {
	const nested = `${'{"a":'.repeat(30_000)}1${"}".repeat(30_000)}`;
	const question = JSON.stringify(moments.call).replace('"sub"', () => `"cnf":${nested},"sub"`);
	const result = await runOn([question], "explain");
	expectHarmless(result);
	expect(result).toMatchObject({ exitCode: 2, stdout: "", stderr: expect.stringMatching(/nested too deep/) });
});

test("no decision has a control character of a question as it is", async () => {
	const odd = "\u009b31m\u2028\u202e\u007f\u0085";
	const { cursor: _, ...others } = moments.resume as { cursor?: object };
	const question = { ...others, cursor: { last_event_id: odd, position: "retained" }, pending: [] };
	const result = await runOn([toLines([question])], "decide");
	expectHarmless(result);
	expect(readLines(result.stdout)).toMatchObject([{ outcome: "proceed", cursor: odd }]);
});
