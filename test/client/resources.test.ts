import { expect, test } from "vitest";
import { createMayAskFor } from "../../src/client/resources.ts";
import cases from "../resources/below.json" with { type: "json" };

const url = new URL("https://mcp.example.com/a/mcp");
const { signal } = new AbortController();
const none = async () => new Response(null, { status: 404 });

test.each(cases)("$resource is below $entry: $below ($why)", async ({ entry, resource, below }) => {
	// What is no wildcard stands for itself, or is a mistake of the application's.
	if (!entry.includes("*"))
		return expect(await createMayAskFor(url, [entry], none)(resource, signal)).toBe(entry === resource);
	try {
		expect(await createMayAskFor(url, [entry], none)(resource, signal)).toBe(below);
	} catch (error) {
		expect(error).toBeInstanceOf(TypeError);
		expect(below).toBe(false);
	}
});

const own = "https://mcp.example.com/.well-known/oauth-protected-resource/a/mcp";
const root = "https://mcp.example.com/.well-known/oauth-protected-resource";

const published: readonly [name: string, at: Record<string, unknown>, indicator: string, may: boolean][] = [
	["its endpoint, at its own place", { [own]: { resource: url.href } }, url.href, true],
	["its endpoint, at the origin's place", { [root]: { resource: url.href } }, url.href, true],
	[
		"the origin, at the origin's place",
		{ [root]: { resource: "https://mcp.example.com" } },
		"https://mcp.example.com",
		true,
	],
	["no other name of the same", { [own]: { resource: url.href } }, `${url.href}/`, false],
	["nothing below what is named", { [own]: { resource: url.href } }, `${url.href}/tools/x`, false],
	[
		"the origin, at the place of one of its paths",
		{ [own]: { resource: "https://mcp.example.com" } },
		"https://mcp.example.com",
		false,
	],
	["a parent path", { [own]: { resource: "https://mcp.example.com/a" } }, "https://mcp.example.com/a", false],
	[
		"a sibling",
		{ [root]: { resource: "https://mcp.example.com/b/mcp" } },
		"https://mcp.example.com/b/mcp",
		false,
	],
	["another origin", { [own]: { resource: "https://bank.example" } }, "https://bank.example", false],
	["no URL", { [own]: { resource: "bank" } }, "bank", false],
	["no name", { [own]: {} }, "undefined", false],
	["no metadata", {}, url.href, false],
	["a list", { [own]: { resource: [url.href] } }, url.href, false],
];

test.each(published)("metadata that names %s", async (_, at, indicator, may) => {
	const mayAskFor = createMayAskFor(url, [], async (place) => {
		const document = at[String(place)];
		return document === undefined ? new Response(null, { status: 404 }) : Response.json(document);
	});
	expect(await mayAskFor(indicator, signal)).toBe(may);
});

test("metadata is fetched when it is needed, and once", async () => {
	const asked: string[] = [];
	const mayAskFor = createMayAskFor(url, ["https://mcp.example.com/tools/*"], async (place) => {
		asked.push(String(place));
		return Response.json({ resource: url.href });
	});
	expect(await mayAskFor("https://mcp.example.com/tools/search", signal)).toBe(true);
	expect(asked).toEqual([]);
	expect(await mayAskFor(url.href, signal)).toBe(true);
	expect(await mayAskFor(url.href, signal)).toBe(true);
	expect(asked).toEqual([own]);
});

test("metadata that cannot be had, or is none, names nothing", async () => {
	for (const fetch of [
		async () => Promise.reject(new TypeError("fetch failed")),
		async () => new Response("<html>"),
		async () => Response.json(null),
	]) {
		expect(await createMayAskFor(url, [], fetch)(url.href, signal)).toBe(false);
	}
});

test.each(["https://*", "*", "https://*.example.com/tools/*", "https://mcp.example.com/t*"])(
	"%s is a mistake",
	(entry) => {
		expect(() => createMayAskFor(url, [entry], none)).toThrow(TypeError);
	},
);
