import { describe, expect, it } from "vitest";
import { junitOf } from "../../src/cli/junit.ts";

const every = Array.from({ length: 0x2100 }, (_, code) => String.fromCharCode(code)).join("");
// XML 1.0 section 2.2, `Char`; and what no parser is to be asked about.
const impossible = /(?![\t\n\r])\p{Cc}(?<=[^\x7f-\x9f])|[\ud800-\udfff\ufffe\uffff]/u;

describe.each([
	["every character", every],
	["what ends a section, an attribute, a document", `]]></failure>"'><!--&amp;&#0;`],
	["lone surrogates, and those that are no characters", "\ud800 \udfff \ufffe \uffff \u{1f600}"],
	["line ends", "a\nb\r\nc\td"],
])("%s", (_, text) => {
	const xml = junitOf([{ name: text, cases: [{ name: text, time: 0, failure: { message: text, text } }] }]);
	const wanted = [...text].map((character) => (impossible.test(character) ? "\ufffd" : character)).join("");

	it("is nothing that no XML may have", () => {
		expect(impossible.test(xml)).toBe(false);
	});

	it("comes out of a parser as it went in, in attributes and in text", () => {
		const [suite, one, message] = [
			/<testsuite name="([^"]*)"/,
			/<testcase name="([^"]*)"/,
			/<failure message="([^"]*)"/,
		].map((attribute) => decoded(attribute.exec(xml)?.[1] ?? "", true));
		expect([suite, one, message]).toEqual([wanted, wanted, wanted]);
		expect(decoded(/type="AssertionError">([^<]*)<\/failure>/.exec(xml)?.[1] ?? "", false)).toBe(wanted);
	});

	it("has the tags it has to have, and no others", () => {
		const tags = [...xml.matchAll(/<[^>]*?(?:"[^"]*"[^>"]*?)*>/g)].map(
			([tag]) => /^<[?/]?\w+/.exec(tag)?.[0],
		);
		expect(tags).toEqual([
			"<?xml",
			"<testsuites",
			"<testsuite",
			"<testcase",
			"<failure",
			"</failure",
			"</testcase",
			"</testsuite",
			"</testsuites",
		]);
	});
});

/** As a parser reads it: XML 1.0 sections 2.11 and 3.3.3. */
function decoded(text: string, isAttribute: boolean): string {
	const lines = text.replace(/\r\n?/g, "\n");
	const spaces = isAttribute ? lines.replace(/[\n\t]/g, " ") : lines;
	const named: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
	return spaces.replace(/&(?:#(\d+)|(\w+));/g, (_, code, name) =>
		code === undefined ? (named[name] ?? "?") : String.fromCodePoint(Number(code)),
	);
}

it("counts, and says how long", () => {
	const xml = junitOf([
		{
			name: "a",
			cases: [
				{ name: "1", time: 0.5 },
				{ name: "2", time: 0.25, skipped: true },
			],
		},
		{ name: "b", cases: [{ name: "3", time: 1, failure: { message: "m", text: "t" } }] },
	]);
	expect(xml).toContain(
		'<testsuites name="mcp-resume-guard" tests="3" failures="1" errors="0" skipped="1" time="1.750">',
	);
	expect(xml).toContain('<testsuite name="a" tests="2" failures="0" errors="0" skipped="1" time="0.750">');
	expect(xml).toContain('<testcase name="2" classname="a" time="0.250"><skipped/></testcase>');
});
