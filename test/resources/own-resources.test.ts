import { describe, expect, it } from "vitest";
import type { PolicyData } from "../../src/generated/types.ts";
import { below, ownResources } from "../../src/resources.ts";
import table from "./below.json" with { type: "json" };

describe("below a wildcard entry", () => {
	it.each(table.map((row) => [row.why, row] as const))("%s", (_, row) => {
		expect(below(row.entry)(row.resource), `${row.entry} ${JSON.stringify(row.resource)}`).toBe(row.below);
	});

	it("has cases for both answers", () => {
		expect(table.filter((row) => row.below).length).toBeGreaterThan(20);
		expect(table.filter((row) => !row.below).length).toBeGreaterThan(100);
	});

	it.each([
		["no wildcard, and equal", "https://a.example/tools", "https://a.example/tools"],
		["an asterisk that is not a segment", "https://a.example/tools*", "https://a.example/toolsearch"],
		["an asterisk in the middle", "https://a.example/*/search", "https://a.example/tools/search"],
		["two asterisks", "https://a.example/tools/**", "https://a.example/tools/search"],
		["two wildcards", "https://a.example/*/*", "https://a.example/tools/search"],
		["no authority", "https://*", "https://a.example/x"],
		["an asterisk in the authority", "https://*/x/*", "https://a.example/x/y"],
		["an empty authority", "https:///*", "https:///x"],
		["one slash", "https:/*", "https:/x"],
		["no scheme", "/*", "/x"],
		["nothing but an asterisk", "*", "x"],
		["no scheme, no path", "a*", "abc"],
		["a URN", "urn:mcp/*", "urn:mcp/search"],
		["an empty segment", "https://a.example//*", "https://a.example//search"],
		["a dot segment", "https://a.example/../*", "https://a.example/../search"],
		["an encoded dot segment", "https://a.example/%2e%2E/*", "https://a.example/%2e%2E/search"],
		["an encoded slash", "https://a.example/x%2Fy/*", "https://a.example/x%2Fy/search"],
		["an encoded backslash", "https://a.example/x%5cy/*", "https://a.example/x%5cy/search"],
		["a backslash", "https://a.example/x\\y/*", "https://a.example/x\\y/search"],
		["a backslash in the authority", "https://a.example\\/*", "https://a.example\\/search"],
		["a query", "https://a.example?/*", "https://a.example?/search"],
		["a fragment", "https://a.example/x#/*", "https://a.example/x#/search"],
		["a letter outside ASCII", "https://a.example/café/*", "https://a.example/café/search"],
	])("is nothing, if the entry is none: %s", (_, entry, resource) => {
		expect(below(entry)(resource)).toBe(false);
	});

	it("is no lone surrogate", () => {
		expect(below("https://a.example/*")("https://a.example/\ud800")).toBe(false);
	});

	it("is quick to refuse a long look-alike", () => {
		expect(below("https://a.example/tools/*")(`https://a.example/tools/${"a/".repeat(200_000)}?`)).toBe(
			false,
		);
	});
});

const DATA: PolicyData = {
	resources: ["https://rs.example"],
	tools: {
		search: { aud: ["https://rs.example/tools/search"], scope: [] },
		["__proto__"]: { aud: ["https://rs.example/tools/odd"], scope: [] },
		"*": { aud: ["https://rs.example/rest"], scope: [] },
	},
	methods: { "resources/read": { aud: ["https://files.example"], scope: [] } },
	session_need: { aud: ["https://rs.example/session"], scope: [] },
	coverage: {
		"https://all.example": ["https://one.example", "https://many.example/t/*"],
		"https://empty.example": [],
	},
	aliases: [["mcp://srv", "mcp://srv/v2"]],
};

describe("own resources", () => {
	const own = ownResources(DATA);

	it.each([
		["resources", "https://rs.example"],
		["aud of a tool", "https://rs.example/tools/search"],
		["aud of a tool with a hostile name", "https://rs.example/tools/odd"],
		["aud of the rest of the tools", "https://rs.example/rest"],
		["aud of a method", "https://files.example"],
		["aud of the session need", "https://rs.example/session"],
		["a coverage key", "https://all.example"],
		["a coverage key that covers nothing", "https://empty.example"],
		["an exact coverage entry", "https://one.example"],
		["below a wildcard entry", "https://many.example/t/x"],
		["a name of an alias set", "mcp://srv"],
		["another name of an alias set", "mcp://srv/v2"],
	])("%s", (_, audience) => {
		expect(own(audience)).toBe(true);
	});

	it.each([
		["another server", "https://evil.example"],
		["a trailing slash", "https://rs.example/"],
		["another case", "https://RS.example"],
		["the name of a tool", "search"],
		["the wildcard entry itself", "https://many.example/t/*"],
		["the path of a wildcard entry", "https://many.example/t"],
		["below an exact entry", "https://one.example/x"],
		["below an own resource", "https://rs.example/tools/other"],
		["a scope", "*"],
		["a name that every object has", "constructor"],
		["the empty string", ""],
	])("not %s", (_, audience) => {
		expect(own(audience)).toBe(false);
	});

	it("needs nothing but resources", () => {
		const least = ownResources({ resources: ["https://rs.example"] });
		expect(least("https://rs.example")).toBe(true);
		expect(least("https://rs.example/x")).toBe(false);
	});
});
