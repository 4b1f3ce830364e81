import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type DecisionCase, readCases } from "../../scripts/tables.ts";
import type { ReplayResult } from "../../src/cli/replay-report.ts";
import { createResumeGuard, type Moment } from "../../src/index.ts";
import { createDecisionLog, fileSink } from "../../src/log/index.ts";
import { ask } from "../tables/run.ts";
import { inTemporaryFolder } from "../temporary.ts";
import { events, fetch, moments, now, payload, resume, rotated, search, server } from "./questions.ts";
import { dataFile, runOn, temporaryFile, toLines } from "./support.ts";

const POLICY = ["--policy", "src/generated/policy.wasm"];

interface Question {
	readonly moment: string;
}

/** Records of these questions as they are decided under these data. */
async function recordsOf(
	questions: readonly object[],
	changes: object = {},
): Promise<Record<string, unknown>[]> {
	const data = JSON.parse(readFileSync("policies/mcp/data.json", "utf8"));
	const guard = await createResumeGuard({ data: { ...data, ...changes }, onFault: () => {} });
	return questions.map((asked, index) => {
		const { moment, ...question } = asked as Question;
		return {
			decision_id: `d${index}`,
			path: `mcp/${moment}/decision`,
			input: { moment, ...question },
			result: ask(guard, moment as Moment, question),
			revision: guard.revision,
			timestamp: "2026-11-30T00:53:20Z",
		};
	});
}

async function replayOf(log: string | Uint8Array, ...argv: string[]) {
	const run = await runOn([], "replay", temporaryFile("log", log), "--json", ...argv);
	return { ...run, result: (run.stdout === "" ? undefined : JSON.parse(run.stdout)) as ReplayResult };
}

const narrow = resume(payload(search));
const wide = resume(payload(server));

describe("the same policy changes nothing", () => {
	test("of what the decision log of a host has, masked as it is, of every decision table", async () => {
		const byData = new Map<string, DecisionCase[]>();
		for (const one of await readCases()) {
			const key = JSON.stringify(one.data);
			byData.set(key, [...(byData.get(key) ?? []), one]);
		}
		let replayed = 0;
		let notAsked = 0;
		await inTemporaryFolder([], async (folder) => {
			for (const [text, cases] of byData) {
				const path = join(folder, "log.jsonl");
				const log = await createDecisionLog({ sinks: [fileSink(path)] });
				const options = { data: JSON.parse(text), onFault: () => {}, onDecision: log.record };
				const guard = await createResumeGuard(options);
				for (const { moment, question } of cases) ask(guard, moment, question);
				await log.close();
				const { result, exitCode } = await replayOf(
					readFileSync(path),
					"--data",
					temporaryFile("data.json", text),
				);
				expect(result).toMatchObject({ changes: [], unreadable: { count: 0 }, notReplayable: { count: 0 } });
				expect(result.replayed + result.notAsked).toBe(cases.length);
				expect(exitCode).toBe(0);
				replayed += result.replayed;
				notAsked += result.notAsked;
				rmSync(path);
			}
		});
		expect(replayed).toBeGreaterThan(600);
		expect(notAsked).toBeGreaterThan(50);
	}, 120_000);

	test("of what a host asked without a time: it was asked then", async () => {
		const { now: _, ...untimed } = narrow;
		const [record] = await recordsOf([narrow]);
		const { result } = await replayOf(toLines([{ ...record, input: untimed }]), ...POLICY);
		expect(result).toMatchObject({ replayed: 1, unchanged: 1, exit: 0 });
	});
});

describe("what changes, worst first", () => {
	const stranger = resume({ ...payload(server), sub: "mallory" });
	const other = { ...payload(search), sub: "alice" };
	const call = { ...moments.call, presented: payload(search), tool: "fetch" };

	test.each<[string, object[], object, object, object[], number]>([
		[
			"what was refused would pass",
			[narrow, call],
			{},
			{ coverage: { [server]: [`${server}/tools/*`], [search]: [fetch] } },
			[
				{
					change: "passes",
					widens: true,
					count: 2,
					events: 7,
					before: { outcome: "reauthorize", code: "audience_not_covered" },
					after: { outcome: "proceed", code: "covered" },
					examples: ["d0", "d1"],
				},
			],
			1,
		],
		[
			"more would be delivered",
			[narrow],
			{},
			{ replay: "prefix" },
			[{ change: "delivers_more", widens: true, count: 1, events: 6, examples: ["d0"] }],
			1,
		],
		[
			"a session that ended would be kept",
			[stranger],
			{},
			{ foreign_principal: "keep" },
			[{ change: "session_kept", widens: false, before: { code: "principal_drift" } }],
			0,
		],
		[
			"what a call emits would need less",
			[moments.call],
			{},
			{ tools: { search: { aud: [], scope: [] }, fetch: { aud: [fetch], scope: [] } } },
			[{ change: "needs_less", widens: false, members: ["label"] }],
			0,
		],
		[
			"what passed would be refused",
			[resume(payload(search), events.slice(0, 6))],
			{},
			{ profile: "strict" },
			[{ change: "refused", widens: false, count: 1, events: -6, after: { code: "binding_drift" } }],
			0,
		],
		[
			"less would be delivered",
			[narrow],
			{ replay: "prefix" },
			{},
			[{ change: "delivers_less", widens: false, events: -6 }],
			0,
		],
		[
			"a session that was kept would end",
			[stranger],
			{ foreign_principal: "keep" },
			{},
			[{ change: "session_ended", widens: false }],
			0,
		],
		[
			"another status",
			[narrow],
			{},
			{ status: { audience_not_covered: 401 } },
			[{ change: "otherwise", widens: false, members: ["status"] }],
			0,
		],
		["nothing", [narrow, wide, resume(other)], {}, {}, [], 0],
	])("%s", async (_, questions, before, after, changes, exit) => {
		const log = toLines(await recordsOf(questions, before));
		const { result, exitCode } = await replayOf(log, "--data", dataFile(after));
		expect(result.changes).toMatchObject(changes);
		expect(result.changes).toHaveLength(changes.length);
		expect(result.replayed).toBe(questions.length);
		expect(exitCode).toBe(exit);
		expect(result.exit).toBe(exit);
	});

	test("all of them in their order, as text too", async () => {
		const questions = [
			rotated,
			wide,
			resume(payload(search), events.slice(0, 6)),
			narrow,
			call,
			{ ...rotated, presented: payload("mcp://other") },
		];
		const records = await recordsOf(questions, { resources: [server, "mcp://srv", "mcp://srv/v2"] });
		const after = { resources: [server, "mcp://srv", "mcp://srv/v2"], replay: "prefix", profile: "per-tool" };
		const { result } = await replayOf(toLines(records), "--data", dataFile(after));
		const kinds = result.changes.map(({ change }) => change);
		expect(kinds).toEqual([...kinds].sort((a, b) => order.indexOf(a) - order.indexOf(b)));
		expect(new Set(kinds)).toEqual(new Set(["passes", "delivers_more"]));

		const log = temporaryFile("log", toLines(records));
		const { stdout, exitCode } = await runOn([], "replay", log, "--data", dataFile(after));
		expect(exitCode).toBe(1);
		expect(stdout).toMatch(
			/^was refused, would pass:\n {2}1 × binding_drift \(reinitialize\) → covered \(proceed\)$/m,
		);
		expect(stdout).toMatch(/^more events would be delivered:$/m);
		expect(stdout.indexOf("would pass:")).toBeLessThan(stdout.indexOf("more events"));
	});

	const order = [
		"passes",
		"delivers_more",
		"session_kept",
		"needs_less",
		"refused",
		"delivers_less",
		"session_ended",
		"otherwise",
	];

	test("with as many examples as are asked for", async () => {
		const log = toLines(await recordsOf(Array.from({ length: 9 }, () => narrow)));
		for (const limit of [0, 3, 9]) {
			const { result } = await replayOf(
				log,
				"--data",
				dataFile({ replay: "prefix" }),
				"--limit",
				String(limit),
			);
			expect(result.changes[0]).toMatchObject({ count: 9 });
			expect(result.changes[0]?.examples).toHaveLength(limit);
		}
	});
});

describe("however the log was kept", async () => {
	const records = await recordsOf([narrow, wide, moments.call, moments.session, moments.delivery]);
	const lines = toLines(records);
	const [first, ...others] = records;
	test.each<[string, string | Uint8Array]>([
		["JSON lines", lines],
		["without the last line feed", lines.trimEnd()],
		["with empty lines", `\n\n${lines.replaceAll("\n", "\n\n")}`],
		["with carriage returns", lines.replaceAll("\n", "\r\n")],
		["with a byte order mark", `\ufeff${lines}`],
		["one array", JSON.stringify(records)],
		["one array over many lines", `\n  ${JSON.stringify(records, undefined, "\t")}\n`],
		["arrays one after another", `${JSON.stringify([first])}\n[]${JSON.stringify(others)}`],
		["an array with a byte order mark", `\ufeff${JSON.stringify(records)}`],
		["JSON lines, compressed", gzipSync(lines)],
		["an array, compressed", gzipSync(JSON.stringify(records))],
		["compressed files one after another", Buffer.concat(records.map((one) => gzipSync(toLines([one]))))],
	])("%s", async (_, log) => {
		const { result, exitCode } = await replayOf(log, ...POLICY);
		expect(result).toMatchObject({ replayed: 5, unchanged: 5, unreadable: { count: 0 } });
		expect(exitCode).toBe(0);
	});

	test.each([1, 2, 3, 7, 64])("in chunks of %i bytes, on standard input", async (size) => {
		for (const log of [
			lines,
			JSON.stringify(records),
			`${JSON.stringify([first])} ${JSON.stringify(others)}`,
		]) {
			const bytes = Buffer.from(log);
			const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
				bytes.subarray(at * size, (at + 1) * size),
			);
			const { stdout } = await runOn(chunks, "replay", "-", "--json", ...POLICY);
			expect(JSON.parse(stdout)).toMatchObject({ replayed: 5, unchanged: 5, exit: 0 });
		}
	});
});

describe("what cannot be decided again is counted and named, and the answer is not yes", async () => {
	const [good = {}] = await recordsOf([wide]);
	const whole = gzipSync(toLines(Array.from({ length: 50 }, () => good)));

	test.each<[string, string | Uint8Array, object]>([
		["no JSON", `${JSON.stringify(good)}\n{"sub": "s3cret`, { place: "line 2", problem: /not JSON/ }],
		["no object", `${JSON.stringify(good)}\n7\n`, { place: "line 2", problem: /not an object/ }],
		[
			"no UTF-8",
			Buffer.concat([Buffer.from(`${JSON.stringify(good)}\n"`), Buffer.of(0xff, 0x22)]),
			{ place: "line 2", problem: /not UTF-8/ },
		],
		[
			"too long",
			`${JSON.stringify(good)}\n"${"x".repeat(17 * 1024 * 1024)}"\n`,
			{ place: "line 2", problem: /longer than/ },
		],
		["no path", toLines([good, { ...good, path: undefined }]), { place: "line 2", problem: /\/path/ }],
		[
			"no decision",
			toLines([good, { ...good, result: { outcome: "maybe" } }]),
			{ place: "line 2", problem: /\/result/ },
		],
		[
			"another moment",
			toLines([good, { ...good, path: "mcp/call/decision" }]),
			{ place: "line 2", problem: /\/input\/moment/ },
		],
		["an array without an end", `[${JSON.stringify(good)},`, { place: "element 2", problem: /no end/ }],
		[
			"an element without an end",
			`[${JSON.stringify(good)}, {"a": "`,
			{ place: "element 2", problem: /no end/ },
		],
		[
			"an element that is none",
			`[${JSON.stringify(good)}, {"a"}]`,
			{ place: "element 2", problem: /not JSON/ },
		],
		[
			"something after an array",
			`[${JSON.stringify(good)}] x [${JSON.stringify(good)}]`,
			{ place: "element 2", problem: /the rest cannot be read/ },
		],
		[
			"an element that is too long",
			`[${JSON.stringify(good)},"${"x".repeat(17 * 1024 * 1024)}"]`,
			{ place: "element 2", problem: /longer than/ },
		],
		[
			"a compressed file that was cut",
			whole.subarray(0, whole.length - 9),
			{ place: /^after line \d+$/, problem: /gzip/ },
		],
		[
			"a compressed file that was damaged",
			Buffer.concat([whole.subarray(0, -4), Buffer.from("xxxx")]),
			{ place: /^after line \d+$/, problem: /gzip/ },
		],
		[
			"no gzip after its magic number",
			Buffer.from("1f8b0800deadbeef", "hex"),
			{ place: "after line 0", problem: /gzip/ },
		],
	])("%s", async (_, log, { place, problem }: { place?: string | RegExp; problem?: RegExp }) => {
		const { result, exitCode, stderr } = await replayOf(log, ...POLICY);
		expect(result.unreadable.count).toBe(1);
		expect(result.unreadable.examples[0]?.name).toMatch(place ?? "");
		expect(result.unreadable.examples[0]?.reason).toMatch(problem ?? "");
		expect(JSON.stringify(result)).not.toContain("s3cret");
		expect(exitCode).toBe(2);
		expect(stderr).toBe("");
	});

	test.each<[string, object, string]>([
		["a record without facts", { input: undefined }, "the facts are not there"],
		["a record without its decision", { result: undefined }, "the decision is not there"],
		["erased facts", { erased: ["/input/presented/aud"] }, "facts were erased by masking"],
		[
			"erased facts that are called whole",
			{ erased: ["/input/presented/scope"], custom: { input: "whole" } },
			"facts were erased by masking",
		],
		["masked facts", { masked: ["/input/presented/sub"] }, "facts were erased by masking"],
		["facts that are there in part", { custom: { input: "partial" } }, "facts were erased by masking"],
		[
			"facts that were cut",
			{ custom: { input: "partial", truncated: true } },
			"the facts were too long for the log",
		],
		[
			"a record of a failed mask",
			{ input: undefined, custom: { input: "none", mask_error: true } },
			"the facts are not there",
		],
	])("%s", async (_, changes, reason) => {
		const { result, exitCode } = await replayOf(
			toLines([good, { ...good, decision_id: "bad", ...changes }]),
			...POLICY,
		);
		expect(result).toMatchObject({ replayed: 1, unreadable: { count: 0 } });
		expect(result.notReplayable).toEqual({ count: 1, examples: [{ name: "bad", reason }] });
		expect(exitCode).toBe(2);
		const { stdout } = await runOn([toLines([good, { ...good, ...changes }])], "replay", "-", ...POLICY);
		expect(stdout).toContain("not replayable: 1");
	});

	test.each<[string, (input: Record<string, object>) => object, RegExp]>([
		["no request", ({ request: _, ...input }) => input, /invalid_facts, .*request/],
		[
			"a claim of another type",
			(input) => ({ ...input, presented: { ...input.presented, sub: 7 } }),
			/invalid_facts, .*sub/,
		],
		[
			"claims of no token",
			(input) => ({ ...input, presented: { ...input.presented, exp: undefined } }),
			/token_missing, .*exp/,
		],
		[
			"a binding that is none",
			(input) => ({ ...input, session: { ...input.session, binding: { sub: "s3cret" } } }),
			/policy_fault, .*iss/,
		],
	])("facts that the candidate cannot decide: %s", async (_, change, reason) => {
		const bad = { ...good, decision_id: "bad", input: change(good.input as Record<string, object>) };
		const { result, exitCode } = await replayOf(toLines([good, bad]), ...POLICY);
		expect(result).toMatchObject({ replayed: 1, changes: [], notReplayable: { count: 1 } });
		expect(result.notReplayable.examples[0]?.name).toBe("bad");
		expect(result.notReplayable.examples[0]?.reason).toMatch(reason);
		expect(JSON.stringify(result)).not.toContain("s3cret");
		expect(exitCode).toBe(2);
	});

	test("a token that the policy itself misses is a change", async () => {
		const { presented: _, ...asked } = moments.session;
		const [record] = await recordsOf([asked]);
		const before = { outcome: "proceed", code: "anonymous" };
		const { result } = await replayOf(toLines([{ ...record, result: before }]), ...POLICY);
		expect(result.changes).toMatchObject([{ change: "refused", after: { code: "token_missing" } }]);
	});

	test("what a mask replaced and this package calls whole is decided again", async () => {
		const record = { ...good, masked: ["/input/presented/sub"], custom: { input: "whole" } };
		expect((await replayOf(toLines([record]), ...POLICY)).result).toMatchObject({ replayed: 1, exit: 0 });
	});

	test("a decision that would pass outweighs what cannot be read", async () => {
		const [record] = await recordsOf([narrow]);
		const { exitCode } = await replayOf(`${toLines([record])}x\n`, "--data", dataFile({ replay: "prefix" }));
		expect(exitCode).toBe(1);
	});

	test.each<[string, string]>([
		["an empty log", ""],
		["a log of empty lines", "\n \n"],
		["an empty array", "[]"],
		["a log of other policies", toLines([{ path: "system/authz/allow" }])],
		["a log of a shadow", toLines([{ ...good, path: "shadow/mcp/resume/decision" }])],
	])("%s has nothing to say yes of", async (_, log) => {
		const { result, exitCode } = await replayOf(log, ...POLICY);
		expect(result).toMatchObject({ replayed: 0, unreadable: { count: 0 } });
		expect(exitCode).toBe(2);
	});

	test("other policies' records and a shadow's are passed over and counted", async () => {
		const log = toLines([
			good,
			{ path: "system/authz/allow" },
			{ ...good, path: "shadow/mcp/resume/decision" },
		]);
		const { result, exitCode } = await replayOf(log, ...POLICY);
		expect(result).toMatchObject({ replayed: 1, other: 1, shadow: 1 });
		expect(exitCode).toBe(0);
	});
});

describe("what a replay cannot see, it says", () => {
	test("a claim that the candidate compares and no record has", async () => {
		const log = toLines(await recordsOf([wide]));
		const { result } = await replayOf(log, "--data", dataFile({ identity_claims: ["org_id"] }));
		expect(result.notes.join()).toMatch(/org_id.*cannot be seen/);
	});

	test("facts that the same revision decides otherwise", async () => {
		const [record] = await recordsOf([wide]);
		const log = toLines([{ ...record, result: { ...(record?.result as object), status: 201 } }]);
		const { result } = await replayOf(log, ...POLICY);
		expect(result.notes.join()).toMatch(/this very revision/);
	});

	test("a candidate that fails", async () => {
		const broken = { ...moments.call, session: { ...moments.call.session, binding: { sub: "alice" } } };
		const [record] = await recordsOf([moments.call]);
		const { result } = await replayOf(toLines([{ ...record, input: broken }]), ...POLICY);
		expect(result).toMatchObject({ replayed: 0, changes: [], notReplayable: { count: 1 }, exit: 2 });
		expect(result.notes.join()).toMatch(/failed 1 time/);
	});
});

test("ids and codes of a log do not act on the terminal that shows them", async () => {
	const evil = "\u001b[2J\u202e<b>\n▶";
	const [record] = await recordsOf([narrow]);
	const custom = { ...(record?.result as object), code: `custom:${evil}` };
	const log = toLines([
		{ ...record, decision_id: evil },
		{ ...record, result: custom },
		{ ...record, decision_id: evil, erased: ["/input"] },
	]);
	for (const argv of [[], ["--json"]]) {
		const { stdout } = await runOn([log], "replay", "-", "--data", dataFile({ replay: "prefix" }), ...argv);
		expect(stdout.replaceAll("\n", "")).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
	}
});

test("codes without end do not fill the memory: further kinds are counted", async () => {
	const [record] = await recordsOf([narrow]);
	const many = Array.from({ length: 1_200 }, (_, index) => ({
		...record,
		result: { ...(record?.result as object), code: `custom:c${index}` },
	}));
	const [passing] = await recordsOf([wide]);
	const refused = {
		...passing,
		result: { ...(passing?.result as object), outcome: "refuse", code: "custom:no" },
	};
	const { result } = await replayOf(toLines([...many, refused]), ...POLICY);
	expect(result.changes).toHaveLength(1_001);
	expect(result.changes[0]).toMatchObject({ change: "passes", count: 1 });
	expect(result.furtherChanges).toBe(200);
	expect(result.changed).toBe(1_201);
});

describe("exits with 2 and one line where it cannot begin", () => {
	test.each<[string, () => string[], RegExp]>([
		["without a candidate", () => [temporaryFile("log", "")], /needs a candidate/],
		["without a log", () => POLICY, /missing required argument/],
		[
			"with a log that is not there",
			() => ["/nowhere/to/be/found", ...POLICY],
			/the log \S+ cannot be read: ENOENT/,
		],
		["with a candidate that is not there", () => ["-", "--data", "/nowhere/to/be/found"], /cannot be read/],
		["with a policy that is not there", () => ["-", "--policy", "/nowhere/to/be/found"], /cannot be read/],
		["with a policy that is none", () => ["-", "--policy", temporaryFile("p", "x")], /not WebAssembly/],
		["with a bundle that is none", () => ["-", "--policy", temporaryFile("p", gzipSync("x"))], /bundle/],
		[
			"with data beside a bundle",
			() => ["-", "--policy", temporaryFile("p", gzipSync("x")), "--data", dataFile({})],
			/has its own/,
		],
		["with a limit that is no number", () => ["-", ...POLICY, "--limit", "many"], /number/],
	])("%s", async (_, argv, message) => {
		const { exitCode, stdout, stderr } = await runOn([], "replay", ...argv());
		expect(exitCode).toBe(2);
		expect(stdout).toBe("");
		expect(stderr).toMatch(message);
		expect(stderr.trimEnd().split("\n")).toHaveLength(1);
	});
});

test("questions that were decided in this repository's own time are decided in it again", async () => {
	const soon = resume({ ...payload(server), exp: now + 1 });
	const { result } = await replayOf(toLines(await recordsOf([soon])), ...POLICY);
	expect(result).toMatchObject({ replayed: 1, unchanged: 1 });
});
