import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { explain, renderHtml, renderText } from "../../src/explain/index.ts";
import { createResumeGuard } from "../../src/index.ts";
import { now, payload, resume, search, server } from "./questions.ts";
import { runOn } from "./support.ts";

// Claims, tools and ids come from whoever asks: they must not act on the terminal or the page that shows them.

const hostile: readonly [name: string, text: string][] = [
	["an escape sequence", "\u001b[2J\u001b]0;owned\u0007"],
	["a control sequence of one character", "\u009b31m"],
	["a carriage return", "alice\rPROCEED covered"],
	["a line feed", "alice\n▶ 10  covered  fired"],
	["a line separator", "a\u2028b\u2029c"],
	["a right-to-left override", "\u202eecila\u202c"],
	["isolates", "\u2066a\u2069"],
	["what is not to be seen", "al\u200bice\u3164\ufeff"],
	["a tag", "<script>alert(1)</script><img src=x onerror=alert(1)>"],
	["the end of the style", "</style></script><!--"],
	["quotes", `"'\`&lt;\\`],
	["an attribute", '" onmouseover="alert(1)" x="'],
	["other spaces", "a\u00a0b\u3000c"],
	["private and unassigned characters", "\ue000\u{10ffff}\u{e0041}"],
	["a backspace", "mallory\b\b\b\b\b\b\balice"],
];

const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u3000]/u;

function questions(text: string): [string, "resume" | "call" | "delivery" | "session", object][] {
	const base = {
		now,
		session: { binding: payload(server), transport: "streamable-http", opened_at: now - 60 },
	};
	const request = { method: "POST", transport: "streamable-http", session: "known" };
	const label = { tool: text, request_id: text, aud: [text], scope: [text] };
	return [
		["a subject", "resume", resume({ ...payload(server), sub: text, client_id: text })],
		["an audience", "resume", resume({ ...payload(server), aud: [text, server], scope: [text] })],
		["a key", "resume", resume({ ...payload(server), cnf: { [text]: text } })],
		["a tool, and ids", "resume", resume(payload(search), [{ id: text, ...label }])],
		[
			"a cursor",
			"resume",
			{ ...resume(payload(server), []), cursor: { last_event_id: text, position: "unknown" } },
		],
		["a call", "call", { ...base, request, presented: payload(server), tool: text }],
		["a method", "session", { ...base, request, presented: payload(server), rpc: text }],
		["an event", "delivery", { ...base, request, presented: payload(server), event: label }],
		["no question", "resume", { ...resume(payload(server)), [text]: text }],
		["no facts", "resume", { ...resume(payload(server)), cursor: { last_event_id: text, position: text } }],
	];
}

const guard = await createResumeGuard({ data: "policies/mcp/data.json", onFault: () => {} });

describe.each(hostile)("%s", (_, text) => {
	test.each(questions(text))("as %s", (_, moment, question) => {
		const explanation = explain(guard, moment, question as never);
		expect(explanation.disagreements).toEqual([]);
		for (const width of [40, 100]) {
			const shown = renderText(explanation, { width, colour: false });
			expect(shown.replaceAll("\n", "")).not.toMatch(UNSEEN);
			// Whatever is in a claim, one line alone begins with the mark of the row that decided.
			expect(shown.match(/^▶/gm) ?? []).toHaveLength(1);
		}
		const page = renderHtml(explanation);
		expect(page.replaceAll("\n", "")).not.toMatch(UNSEEN);
		expect(tagsOf(page)).toEqual(tagsOf(renderHtml(explain(guard, moment, question as never))));
		expect(page).not.toMatch(/<(?:script|img|iframe|link|object|svg)\b|\son\w+="/i);
		expect(page.match(/<\/?style>/g)).toEqual(["<style>", "</style>"]);
	});
});

test("JSON has no character that a terminal acts on, and is the same when read", async () => {
	for (const [, text] of hostile) {
		const question = resume({ ...payload(server), sub: text });
		const { stdout } = await runOn([JSON.stringify(question)], "explain", "--json");
		expect(stdout.slice(0, -1)).not.toMatch(UNSEEN);
		const { comparison } = JSON.parse(stdout);
		expect(comparison.claims).toContainEqual(expect.objectContaining({ claim: "sub", presented: text }));
	}
});

test("a lone surrogate is an invalid question, and shown as what it is", async () => {
	const question = resume({ ...payload(server), sub: "\ud800" });
	const { stdout, exitCode } = await runOn([JSON.stringify(question)], "explain");
	expect(exitCode).toBe(0);
	expect(stdout).toMatch(/^REFUSE {2}invalid_facts$/m);
	expect(stdout.isWellFormed()).toBe(true);
	const page = renderHtml(explain(guard, "resume", question as never));
	expect(page.isWellFormed()).toBe(true);
});

test("two values that look alike and differ are told apart", async () => {
	const lookalike = resume({ ...payload(server), sub: "аlice" });
	const text = renderText(explain(guard, "resume", lookalike as never), { width: 100, colour: false });
	expect(text).toMatch(
		/sub +differs: not allowed +alice +\\u\{430\}lice|sub +differs: not allowed +alice +"\\u\{430\}lice"/,
	);
});

test("long values are cut, and said to be", async () => {
	const long = "x".repeat(100_000);
	const many = Array.from({ length: 2_000 }, (_, index) => `${server}/${index}`);
	const question = resume({ ...payload([...many, server]), sub: long, scope: many }, [
		{ id: long, tool: long, request_id: long, aud: many, scope: many },
	]);
	const explanation = explain(guard, "resume", question as never);
	for (const shown of [renderText(explanation, { width: 100, colour: false }), renderHtml(explanation)]) {
		expect(shown.length).toBeLessThan(60_000);
		expect(shown).toMatch(/characters\s+more/);
	}
});

test("many needs are shown in part, the held one among them", async () => {
	const events = Array.from({ length: 500 }, (_, index) => ({
		id: `e${index}`,
		tool: index === 450 ? "other" : `tool${index}`,
		aud: [index === 450 ? "https://other.example" : search],
		scope: [],
	}));
	const explanation = explain(guard, "resume", resume(payload(search), events) as never);
	expect(explanation.events?.runs).toHaveLength(500);
	const text = renderText(explanation, { width: 100, colour: false });
	expect(text).toMatch(/✗ held +e450/);
	expect(text).toContain("… and 459 more needs");
	expect(text.split("\n").length).toBeLessThan(200);
	expect(renderHtml(explanation)).toMatch(/held<[^\n]*e450/);
});

describe("the page", () => {
	const page = renderHtml(explain(guard, "resume", resume(payload(search)) as never));

	test("allows nothing but its own style", () => {
		const [, csp = ""] = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(page) ?? [];
		const [, style = ""] = /<style>([\s\S]*?)<\/style>/.exec(page) ?? [];
		const hash = createHash("sha256").update(style).digest("base64");
		expect(csp.replaceAll("&#39;", "'")).toBe(
			`default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`,
		);
	});

	test("needs nothing from elsewhere, and no style in attributes, which the policy would not allow", () => {
		expect(page).not.toMatch(/\b(?:src|href|style|action)=/);
		expect(page).not.toMatch(/url\(|@import/);
	});

	test("is well-formed, with a language, a title, one heading of the first level, and headers in its tables", () => {
		expect(page).toMatch(/<html lang="en">/);
		expect(page).toMatch(/<title>reauthorize: audience_not_covered – mcp-resume-guard<\/title>/);
		expect(page.match(/<h1>/g)).toHaveLength(1);
		expect(unclosed(page)).toEqual([]);
		const tables = page.match(/<table[\s\S]*?<\/table>/g) ?? [];
		expect(tables.length).toBeGreaterThan(3);
		for (const table of tables) {
			expect(table).toMatch(/<th scope="col">/);
			expect(table).toMatch(/<th scope="row">/);
			expect(table).toMatch(/<caption>|aria-labelledby=/);
		}
		const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
		expect(new Set(ids).size).toBe(ids.length);
		const references = [...page.matchAll(/aria-labelledby="([^"]*)"/g)].map(([, id]) => id);
		expect(references.filter((id) => !ids.includes(id))).toEqual([]);
	});

	test("is for print, for the dark, and says in words what it says in colours", () => {
		expect(page).toContain("@media print");
		expect(page).toContain("prefers-color-scheme:dark");
		for (const word of ["held", "waiting", "narrower", "YES"]) expect(page).toContain(word);
	});
});

function tagsOf(page: string): string[] {
	return page.match(/<\/?[a-z][a-z0-9]*\b/gi) ?? [];
}

const VOID = new Set(["meta", "br", "!doctype"]);

function unclosed(page: string): string[] {
	const open: string[] = [];
	const wrong: string[] = [];
	for (const [, end, name = ""] of page.matchAll(/<(\/?)([a-z!][a-z0-9]*)\b[^>]*>/gi)) {
		if (VOID.has(name.toLowerCase())) continue;
		if (end === "") open.push(name);
		else if (open.pop() !== name) wrong.push(name);
	}
	return [...wrong, ...open];
}
