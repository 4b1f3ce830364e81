import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Explanation, explain, renderHtml, renderText } from "../../src/explain/index.ts";
import { createResumeGuard, type Moment, type ResumeGuard } from "../../src/index.ts";
import { inTemporaryFolder } from "../temporary.ts";
import { fetch, moments, now, payload, resume, rotated, search, server } from "./questions.ts";
import { dataFile, runOn, temporaryFile } from "./support.ts";

const narrow = resume(payload(search));

async function explainOn(value: unknown, ...argv: string[]) {
	const result = await runOn([JSON.stringify(value)], "explain", "--json", ...argv);
	return { ...result, explanation: JSON.parse(result.stdout) as Explanation };
}

describe("story 1, for a person", () => {
	test("the terminal says what happened, to what, and what would help", async () => {
		const { stdout, exitCode, stderr } = await runOn([JSON.stringify(narrow)], "explain");
		expect(exitCode).toBe(0);
		expect(stderr).toBe("");
		for (const part of [
			/^REAUTHORIZE {2}audience_not_covered$/m,
			/event 48 \(fetch\)/,
			/session is kept;\sHTTP\sstatus\s403/,
			/^ {2}41 ├□□□□□□✗┤/m,
			/✗ held +48 +fetch +lacks aud https:\/\/mcp\.example\.com\/tools\/fetch$/m,
			/< +aud +narrower/,
			/^▶ 9 +audience_not_covered +fired/m,
			/token as required: aud .*tools\/fetch,/,
			/→ proceed \(covered\), 7 events, cursor 48/,
			/explanation and the decision agree/,
		]) {
			expect(stdout).toMatch(part);
		}
		expect(stdout.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
	});

	test("a prefix goes out, and the cursor moves", async () => {
		const { stdout } = await runOn(
			[JSON.stringify(narrow)],
			"explain",
			"--data",
			dataFile({ replay: "prefix" }),
		);
		expect(stdout).toMatch(/^ {2}41 ├■■■■■■│✗┤/m);
		expect(stdout).toContain("6 of 7 pending events go out. The cursor moves from 41 to 47.");
	});

	test("as data", async () => {
		const { explanation } = await explainOn(narrow);
		expect(explanation).toMatchObject({
			moment: "resume",
			decision: { code: "audience_not_covered" },
			events: {
				count: 7,
				deliver: 0,
				cursor: { before: "41", after: "41" },
				runs: [
					{ state: "waiting", first: "42", count: 6, tool: "search", missing: { aud: [], scope: [] } },
					{ state: "held", first: "48", count: 1, tool: "fetch", missing: { aud: [fetch], scope: [] } },
				],
			},
			further: { trials: [{ aud: [fetch, search], outcome: "proceed" }] },
			disagreements: [],
		});
	});
});

describe("story 2, for a person", () => {
	const data = { resources: ["mcp://srv", "mcp://srv/v2"] };

	test("the audience went sideways, and a name of it would have been an alias", async () => {
		const { explanation } = await explainOn(rotated, "--data", dataFile(data));
		expect(explanation.comparison.claims).toContainEqual(
			expect.objectContaining({ claim: "aud", relation: "differs", allowed: false }),
		);
		expect(explanation.verdict).toMatch(/^Reinitialize \(binding_drift\): .* session ends.* HTTP status 403/);
		expect(explanation.further.summary).toMatch(/aliases/);
		expect(explanation.further.trials).toMatchObject([{ aud: ["mcp://srv"], outcome: "proceed" }]);
	});

	test("with aliases the two are one", async () => {
		const aliases = [["mcp://srv", "mcp://srv/v2"]];
		const { explanation } = await explainOn(rotated, "--data", dataFile({ ...data, aliases }));
		expect(explanation.comparison.claims).toContainEqual(
			expect.objectContaining({ claim: "aud", relation: "equal", note: "through aliases" }),
		);
	});
});

describe("how aud stands to what was recorded", () => {
	const wide = { coverage: { [server]: [`${server}/tools/*`], [search]: [server] } };
	test.each<[string, string | string[], string | string[], object, string]>([
		["the same", server, server, {}, "equal"],
		["in another order", [server, search], [search, server], {}, "equal"],
		["less, through coverage", server, search, {}, "narrower"],
		["more, through coverage", search, server, {}, "wider"],
		["more, by name", search, [search, fetch], {}, "wider"],
		["another tool", search, fetch, {}, "differs"],
		["somebody else's", server, "https://other.example", {}, "differs"],
		["each covers the other", server, search, wide, "wider"],
	])("%s: %j, now %j", async (_, recorded, presented, data, relation) => {
		const question = {
			...moments.session,
			request: { method: "GET", transport: "streamable-http", session: "known" },
			session: { binding: payload(recorded), transport: "streamable-http", opened_at: now - 60 },
			presented: payload(presented),
		};
		const { explanation } = await explainOn(question, "--data", dataFile({ profile: "per-tool", ...data }));
		const aud = explanation.comparison.claims.find(({ claim }) => claim === "aud");
		expect(aud).toMatchObject({ relation });
		expect(explanation.disagreements).toEqual([]);
	});
});

describe("a policy that does not keep to the table", () => {
	const covered = { outcome: "proceed", code: "covered", drift: [], session: "keep", status: 200 };
	const refused = { outcome: "refuse", code: "cursor_ahead", drift: [], session: "keep", status: 400 };

	/** A guard whose first answer is this one, whatever the policy says. */
	async function lying(answer: object) {
		const guard = await createResumeGuard({ data: "policies/mcp/data.json" });
		let isFirst = true;
		const lie = (moment: Moment) => (question: never) => {
			const truth = guard.probe[moment](question);
			if (!isFirst) return truth;
			isFirst = false;
			return answer;
		};
		const probe = {
			session: lie("session"),
			call: lie("call"),
			resume: lie("resume"),
			delivery: lie("delivery"),
		};
		return { probe: probe as unknown as ResumeGuard["probe"], data: guard.data, revision: guard.revision };
	}

	test.each<[string, object, object, RegExp]>([
		[
			"lets pass what is not covered",
			{ ...covered, deliver: 7, cursor: "48" },
			narrow,
			/row 9 .* should have decided/,
		],
		[
			"lets an expired token pass",
			{ ...covered, deliver: 7, cursor: "48" },
			resume({ ...payload(server), exp: now - 3600 }),
			/row 1 .* should have decided/,
		],
		[
			"lets a stranger pass",
			{ ...covered, deliver: 7, cursor: "48" },
			resume({ ...payload(server), sub: "mallory" }),
			/row 3 .* should have decided/,
		],
		[
			"refuses by a row that does not hold",
			{ ...refused, deliver: 0, cursor: "41" },
			narrow,
			/row 8 .* decided, but/,
		],
		[
			"has a code that is not in the table",
			{ ...refused, code: "because", deliver: 0, cursor: "41" },
			narrow,
			/because is no code/,
		],
		[
			"holds another event than the first that is not covered",
			{
				outcome: "reauthorize",
				code: "audience_not_covered",
				drift: [],
				session: "keep",
				status: 403,
				deliver: 0,
				cursor: "41",
				held: { event_id: "42", tool: "search", missing: { aud: [search], scope: [] } },
				required: { aud: [server], scope: [] },
			},
			narrow,
			/the decision holds 42.*the first that is not covered is event 48/,
		],
		[
			"asks for a token that would not do",
			{
				outcome: "reauthorize",
				code: "audience_not_covered",
				drift: [],
				session: "keep",
				status: 403,
				deliver: 0,
				cursor: "41",
				held: { event_id: "48", tool: "fetch", request_id: 8, missing: { aud: [fetch], scope: [] } },
				required: { aud: [search], scope: [] },
			},
			narrow,
			/a token as required should proceed, but gets reauthorize/,
		],
	])("%s", async (_, answer, question, message) => {
		const explanation = explain(await lying(answer), "resume", question as never);
		expect(explanation.decision).toEqual(answer);
		expect(explanation.disagreements.join("\n")).toMatch(message);
		expect(renderText(explanation, { width: 100, colour: false })).toMatch(/do not agree/);
		expect(renderHtml(explanation)).toMatch(/do not agree/);
	});
});

describe("a record of a decision log", () => {
	const decided = {
		outcome: "reauthorize",
		code: "audience_not_covered",
		session: "keep",
		status: 403,
		deliver: 0,
		cursor: "41",
	};
	const record = {
		decision_id: "4ca6",
		path: "mcp/resume/decision",
		input: narrow,
		result: decided,
		revision: "r1",
		timestamp: "2026-11-30T00:53:20Z",
	};

	test("is decided again, and said to be the same", async () => {
		const { explanation, exitCode } = await explainOn(record);
		expect(exitCode).toBe(0);
		expect(explanation.record).toMatchObject({ decision_id: "4ca6", revision: "r1" });
		expect(explanation.disagreements).toEqual([]);
	});

	test("that says something else is contradicted, with exit code 1", async () => {
		const result = { ...decided, outcome: "proceed", code: "covered", status: 200, deliver: 7, cursor: "48" };
		const { explanation, exitCode } = await explainOn({ ...record, result });
		expect(exitCode).toBe(1);
		expect(explanation.disagreements.join()).toMatch(
			/the log has outcome proceed, code covered.*revision r1/,
		);
	});

	test("of another revision is told so first, where neither policy nor data is given", async () => {
		const said = /^decided by revision r1; this is the policy and data of this package: give/;
		const result = { ...decided, status: 401 };
		for (const [one, exitCode] of [[record, 0] as const, [{ ...record, result }, 1] as const]) {
			const text = await runOn([JSON.stringify(one)], "explain");
			expect(text).toMatchObject({ exitCode, stdout: expect.stringMatching(said), stderr: "" });
			const json = await runOn([JSON.stringify(one)], "explain", "--json");
			expect(json).toMatchObject({ exitCode, stderr: expect.stringMatching(/decided by revision r1; /) });
		}
		const { explanation } = await explainOn(record);
		const own = { ...record, revision: explanation.revision };
		for (const [one, ...argv] of [[own], [narrow], [record, "--data", "policies/mcp/data.json"]]) {
			const { stdout } = await runOn([JSON.stringify(one)], "explain", ...(argv as string[]));
			expect(stdout).toMatch(/^REAUTHORIZE/);
		}
	});

	test.each<[string, object, RegExp]>([
		["whose facts were erased", { input: undefined, erased: ["/input"] }, /cannot be decided again/],
		["whose facts were masked", { masked: ["/input/presented/aud"] }, /facts were erased by masking/],
		["of another policy", { path: "system/authz/allow" }, /another policy/],
		["of a shadow", { path: "shadow/mcp/resume/decision" }, /shadow/],
		["without a result that is one", { result: { code: 7 } }, /\/result/],
	])("%s is not explained", async (_, changes, message) => {
		const { exitCode, stderr, stdout } = await runOn([JSON.stringify({ ...record, ...changes })], "explain");
		expect(exitCode).toBe(2);
		expect(stdout).toBe("");
		expect(stderr).toMatch(message);
	});

	test("of what was no question says so", async () => {
		const { exitCode, explanation } = await explainOn({
			...record,
			input: { ...narrow, presented: { sub: "a" } },
			result: {
				outcome: "reauthenticate",
				code: "token_missing",
				session: "keep",
				status: 401,
				deliver: 0,
				cursor: "41",
				detail: "/presented/exp",
			},
			custom: { moment: "resume", outcome: "reauthenticate", code: "token_missing", input: "partial" },
		});
		expect(exitCode).toBe(0);
		expect(explanation.verdict).toMatch(/what was presented is no token/);
	});
});

describe("what is no question is not explained, with exit code 2 and a line that does not show it", () => {
	const secret = "s3cret-claim";
	test.each<[string, string | Uint8Array, RegExp]>([
		["nothing", "", /not one JSON object/],
		["not JSON", `{"sub": "${secret}"`, /not one JSON object/],
		["two questions", `${JSON.stringify(narrow)}\n${JSON.stringify(narrow)}\n`, /not one JSON object/],
		["an array", `["${secret}"]`, /not a JSON object/],
		["no moment", `{"presented": {"sub": "${secret}"}}`, /no moment/],
		["a moment of another's", '{"moment": "constructor"}', /no moment/],
		["not UTF-8", Uint8Array.of(0x22, 0xff, 0x22), /not UTF-8/],
		["too long", `{"moment": "${"x".repeat(16 * 1024 * 1024)}"}`, /longer than/],
	])("%s", async (_, text, message) => {
		const { exitCode, stdout, stderr } = await runOn([text], "explain");
		expect(exitCode).toBe(2);
		expect(stdout).toBe("");
		expect(stderr).toMatch(message);
		expect(stderr).not.toContain(secret);
		expect(stderr.trimEnd().split("\n")).toHaveLength(1);
	});

	test("a file that is not there", async () => {
		const { exitCode, stderr } = await runOn([], "explain", "/nowhere/to/be/found");
		expect(exitCode).toBe(2);
		expect(stderr).toMatch(/ENOENT/);
	});
});

test("reads a file, and writes a page beside what it says", async () => {
	await inTemporaryFolder(
		[{ path: "question.json", content: JSON.stringify(narrow, undefined, 2) }],
		async (folder) => {
			const out = join(folder, "out.html");
			const { exitCode, stdout } = await runOn([], "explain", join(folder, "question.json"), "--html", out);
			expect(exitCode).toBe(0);
			expect(stdout).toMatch(/^REAUTHORIZE/);
			expect(existsSync(out)).toBe(true);
			expect(readFileSync(out, "utf8")).toMatch(/^<!doctype html>/);
		},
	);
});

test("a page that cannot be written is said, with exit code 2", async () => {
	const { exitCode, stderr } = await runOn([JSON.stringify(narrow)], "explain", "--html", "/nowhere/x.html");
	expect(exitCode).toBe(2);
	expect(stderr).toMatch(/ENOENT/);
});

test("a fault of the policy is named on standard error", async () => {
	const broken = { ...moments.call, session: { ...moments.call.session, binding: { sub: "alice" } } };
	const { stdout, stderr } = await runOn([JSON.stringify(broken)], "explain");
	expect(stdout).toMatch(/^REFUSE {2}policy_fault$/m);
	expect(stderr).toMatch(/policy_fault: \/session\/binding\/iss/);
});

test("a policy that is named explains", async () => {
	const { exitCode } = await runOn(
		[JSON.stringify(narrow)],
		"explain",
		"--policy",
		"src/generated/policy.wasm",
		"--data",
		dataFile({}),
	);
	expect(exitCode).toBe(0);
});

test("a policy that is no policy is said, with exit code 2", async () => {
	const { exitCode, stderr } = await runOn(
		[JSON.stringify(narrow)],
		"explain",
		"--policy",
		temporaryFile("p", "x"),
	);
	expect(exitCode).toBe(2);
	expect(stderr).toMatch(/not WebAssembly/);
});

test.each([40, 60, 80, 120, 160])("no line is wider than a terminal of %i columns", async (width) => {
	const guard = await createResumeGuard({ data: "policies/mcp/data.json" });
	for (const [moment, question] of [
		["resume", narrow],
		["session", rotated],
		["call", moments.call],
		["delivery", moments.delivery],
	] as const) {
		const text = renderText(explain(guard, moment, question as never), { width, colour: false });
		expect(text.split("\n").filter((line) => [...line].length > width)).toEqual([]);
	}
});

test("colours say nothing that the text does not", async () => {
	const guard = await createResumeGuard({ data: "policies/mcp/data.json" });
	const explanation = explain(guard, "resume", narrow as never);
	const coloured = renderText(explanation, { width: 100, colour: true });
	// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
	expect(coloured.replace(/\x1b\[\d+m/g, "")).toBe(renderText(explanation, { width: 100, colour: false }));
	expect(coloured).not.toBe(renderText(explanation, { width: 100, colour: false }));
});

test("docs/explain.md shows what is said", async () => {
	const { stdout } = await runOn([JSON.stringify(narrow)], "explain");
	const withoutRevision = (text: string) => text.replace(/sha256-[0-9a-f]+/g, "sha256-…");
	expect(withoutRevision(readFileSync("docs/explain.md", "utf8"))).toContain(withoutRevision(stdout));
});
