import { describe, expect, it } from "vitest";
import { normalised, publicBase, publicUrl } from "../../src/tokens/url.ts";

describe("two ways to write one URL", () => {
	it.each([
		["case of the scheme", "HTTPS://rs.example/mcp"],
		["case of the host", "https://RS.Example/mcp"],
		["the default port", "https://rs.example:443/mcp"],
		["a query", "https://rs.example/mcp?sessionId=1&x=/"],
		["a fragment", "https://rs.example/mcp#x"],
		["dot segments", "https://rs.example/a/../b/./../mcp"],
		["encoded dot segments", "https://rs.example/a/%2e%2E/mcp"],
		["an encoded unreserved character", "https://rs.example/%6Dc%70"],
	])("%s", (_, url) => {
		expect(normalised(url)).toBe("https://rs.example/mcp");
	});

	it.each([
		["case of percent-encoding", "https://rs.example/%c3%a9", "https://rs.example/%C3%A9"],
		["a character outside ASCII", "https://rs.example/é", "https://rs.example/%C3%A9"],
		["an encoded slash stays one", "https://rs.example/a%2fb", "https://rs.example/a%2Fb"],
		["no path", "https://rs.example", "https://rs.example/"],
		["the default port of http", "http://rs.example:80/mcp", "http://rs.example/mcp"],
	])("%s", (_, url, normal) => {
		expect(normalised(url)).toBe(normal);
	});

	it.each([
		["another scheme", "http://rs.example/mcp"],
		["another host", "https://rs.example.evil/mcp"],
		["another port", "https://rs.example:8443/mcp"],
		["a trailing slash", "https://rs.example/mcp/"],
		["an empty segment", "https://rs.example//mcp"],
		["case of the path", "https://rs.example/MCP"],
		["an encoded slash", "https://rs.example%2Fmcp/"],
		["a user", "https://alice@rs.example/mcp"],
	])("not: %s", (_, url) => {
		expect(URL.canParse(url) && normalised(url)).not.toBe("https://rs.example/mcp");
	});
});

describe("what comes before the path", () => {
	it.each<[string, string | URL | undefined, string[], string | undefined]>([
		["the origin of the resource", undefined, ["https://rs.example"], "https://rs.example/"],
		["without the resource's path", undefined, ["https://rs.example/mcp?x"], "https://rs.example/"],
		["with its port", undefined, ["http://127.0.0.1:3000/mcp"], "http://127.0.0.1:3000/"],
		[
			"of the first that is a URL",
			undefined,
			["mcp://srv", "https://a.example", "https://b.example"],
			"https://a.example/",
		],
		["none without one", undefined, ["mcp://srv", "urn:x", "https://"], undefined],
		[
			"what is given",
			"https://api.example/mcp-server",
			["https://rs.example"],
			"https://api.example/mcp-server",
		],
		["what is given, as a URL", new URL("https://api.example"), ["mcp://srv"], "https://api.example/"],
	])("%s", (_, given, resources, base) => {
		expect(publicBase(given, resources)?.href).toBe(base);
	});

	it.each([
		"rs.example",
		"/mcp",
		"",
		"mcp://srv",
		"https://u@x",
		"https://:p@x",
		"https://x?y",
		"https://x#y",
	])("not %j", (given) => {
		expect(() => publicBase(given, ["https://rs.example"])).toThrow(TypeError);
	});
});

describe("the URL that a client used", () => {
	it.each([
		["from the path on", "https://rs.example", "/mcp", "https://rs.example/mcp"],
		["with a query", "https://rs.example", "/messages?sessionId=1?2#3", "https://rs.example/messages"],
		[
			"whatever its Host said",
			"https://rs.example",
			"http://evil.example:8080/mcp?x",
			"https://rs.example/mcp",
		],
		["without a path", "https://rs.example", "https://evil.example?x", "https://rs.example/"],
		[
			"with a path that a proxy takes away",
			"https://x.example/a/b/",
			"http://h/mcp",
			"https://x.example/a/b/mcp",
		],
		[
			"a path that looks like a host",
			"https://rs.example",
			"//evil.example/mcp",
			"https://rs.example//evil.example/mcp",
		],
		[
			"a path that looks like a user",
			"https://rs.example",
			"@evil.example/mcp",
			"https://rs.example/@evil.example/mcp",
		],
		[
			"a path that holds a URL",
			"https://rs.example",
			"/x/http://evil.example/",
			"https://rs.example/x/http://evil.example/",
		],
		["several lines", "https://rs.example", "/mcp?a\n/b", "https://rs.example/mcp"],
	])("%s", (_, base, requested, url) => {
		expect(publicUrl(new URL(base), requested)).toBe(url);
	});
});
