import { describe, expect, test } from "vitest";
import { parseJson } from "../src/nesting.ts";

const lists = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

describe("JSON that somebody has written is read", () => {
	test.each<[string, string]>([
		["a hundred deep", lists(100)],
		["a hundred deep, lists and objects by turns", `${'[{"a":'.repeat(50)}1${"}]".repeat(50)}`],
		["however many lie beside each other", `[${"[],{},".repeat(1_000)}0]`],
		["with brackets in text", JSON.stringify(["[{".repeat(200), '"['.repeat(200), "\\\\"])],
		["with brackets in names", JSON.stringify({ ["[".repeat(200)]: 1, ['\\"{'.repeat(200)]: 2 })],
	])("%s", (_, text) => {
		expect(parseJson(text)).toEqual(JSON.parse(text));
	});
});

describe("JSON that somebody has written is refused", () => {
	test.each<[string, string]>([
		["101 deep", lists(101)],
		["101 deep at its end", `[[],{"a":"\\"]}"},${lists(100)}]`],
		["101 deep in objects", `${'{"a":'.repeat(101)}1${"}".repeat(101)}`],
		["without an end", "[".repeat(101)],
	])("%s", (_, text) => {
		expect(() => parseJson(text)).toThrow(new SyntaxError("nested deeper than 100"));
	});

	test("that is none", () => {
		expect(() => parseJson("{")).toThrow(SyntaxError);
	});
});
