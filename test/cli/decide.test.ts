import { describe, expect, test } from "vitest";
import {
	events,
	fetch,
	folded,
	moments,
	normalised,
	payload,
	resume,
	rotated,
	search,
	server,
} from "./questions.ts";
import { dataFile, decide } from "./support.ts";

const held = { outcome: "reauthorize", code: "audience_not_covered", session: "keep", status: 403 };
const missing = { event_id: "48", tool: "fetch", request_id: 8, missing: { aud: [fetch], scope: [] } };

describe("story 1", () => {
	test.each([
		["raw claims, events one by one", resume(payload(search))],
		["normalised claims, events folded", resume(normalised(search), folded)],
	])("a narrow token is told what is missing: %s", async (_, question) => {
		const { answers, exitCode } = await decide([question]);
		expect(answers).toMatchObject([{ ...held, deliver: 0, cursor: "41", held: missing }]);
		expect(exitCode).toBe(0);
	});

	test("with replay: prefix it gets what it covers", async () => {
		const { answers } = await decide([resume(payload(search))], "--data", dataFile({ replay: "prefix" }));
		expect(answers).toMatchObject([{ ...held, deliver: 6, cursor: "47", held: missing }]);
	});

	test.each([
		["the aggregate", payload(server)],
		["both tools", payload([search, fetch])],
	])("a token for %s gets everything", async (_, presented) => {
		const { answers } = await decide([resume(presented)]);
		expect(answers).toMatchObject([{ outcome: "proceed", code: "covered", deliver: 7, cursor: "48" }]);
	});
});

describe("story 2", () => {
	const resources = ["mcp://srv", "mcp://srv/v2"];

	test("an audience that was rotated ends the session", async () => {
		const { answers } = await decide([rotated], "--data", dataFile({ resources }));
		const decision = {
			outcome: "reinitialize",
			code: "binding_drift",
			drift: ["aud"],
			session: "end",
			status: 403,
		};
		expect(answers).toEqual([decision]);
	});

	test("declared as aliases, it goes on", async () => {
		const { answers } = await decide([rotated], "--data", dataFile({ resources, aliases: [resources] }));
		expect(answers).toMatchObject([{ outcome: "proceed", session: "keep" }]);
	});
});

test.each(Object.entries(moments))("answers at %s", async (_, question) => {
	expect((await decide([question])).answers).toMatchObject([{ outcome: "proceed", status: 200 }]);
});

test("a policy that is named decides", async () => {
	const { answers } = await decide([moments.call], "--policy", "src/generated/policy.wasm");
	expect(answers).toMatchObject([{ outcome: "proceed", label: { tool: "search", aud: [search] } }]);
});

test("answers 10,000 lines one for one and in order", async () => {
	const questions = Array.from({ length: 10_000 }, (_, line) => ({
		...resume(payload(line % 2 === 0 ? server : search), events.slice(6)),
		cursor: { last_event_id: `${line}`, position: "retained" },
	}));
	const { answers } = await decide(questions);
	expect(answers.map((answer) => (answer as { cursor: string }).cursor)).toEqual(
		questions.map((_, line) => (line % 2 === 0 ? "48" : `${line}`)),
	);
});

test("facts that are not good are a decision, not an error", async () => {
	const { answers, exitCode } = await decide([{ moment: "call" }, { ...moments.call, presented: {} }]);
	expect(answers).toMatchObject([
		{ outcome: "refuse", code: "invalid_facts", status: 400 },
		{ outcome: "reauthenticate", code: "token_missing", status: 401 },
	]);
	expect(exitCode).toBe(0);
});

test("a fault is a refusal, and standard error says in which line and why", async () => {
	const broken = { ...moments.call, session: { ...moments.call.session, binding: { sub: "alice" } } };
	const { answers, stderr } = await decide([moments.call, broken, moments.call]);
	expect(answers).toMatchObject([{ outcome: "proceed" }, { code: "policy_fault" }, { outcome: "proceed" }]);
	expect(stderr).toMatch(/^mcp-resume-guard: line 2: policy_fault at call: \/session\/binding\/iss: .*\n$/);
});
