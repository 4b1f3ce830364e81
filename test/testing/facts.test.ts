import { describe, expect, it } from "vitest";
import { createResumeGuard, type PolicyData } from "../../src/index.ts";
import { createFacts, facts } from "../../src/testing/index.ts";

const server = "https://mcp.example.com";
const data = "policies/mcp/data.json";

const guard = await createResumeGuard({ data });

describe("all is well but what you say", () => {
	it("at every moment", () => {
		expect(guard.session(facts.session())).toMatchObject({ code: "covered" });
		expect(guard.call(facts.call({ tool: "fetch" }))).toMatchObject({ code: "covered" });
		expect(guard.call(facts.call({ rpc: "resources/read" }))).toMatchObject({ code: "covered" });
		const reference = { tool: "search", aud: [`${server}/tools/search`], scope: [] };
		expect(guard.call(facts.call({ reference }))).toMatchObject({ code: "covered" });
		expect(guard.resume(facts.resume())).toMatchObject({ code: "covered", cursor: "41" });
		const event = facts.event("42", { tool: "fetch" });
		expect(guard.delivery(facts.delivery({ event: { aud: event.aud, scope: [] } }))).toMatchObject({
			code: "covered",
		});
	});

	it("merges into what is usual", () => {
		const { presented, request } = facts.call({ tool: "fetch", presented: { sub: "mallory", org_id: 7 } });
		expect(presented).toMatchObject({ iss: "https://as.example.com", sub: "mallory", org_id: 7 });
		expect(request).toEqual({ method: "POST", transport: "streamable-http", session: "known" });
	});

	it.each([
		["no token", facts.call({ tool: "fetch", presented: null }), "token_missing"],
		["an old token", facts.call({ tool: "fetch", now: 1797000000 }), "token_expired"],
		[
			"a narrow token",
			facts.call({ tool: "fetch", presented: { aud: `${server}/tools/search` } }),
			"audience_not_covered",
		],
		["another client", facts.call({ tool: "fetch", presented: { client_id: null } }), "principal_drift"],
		[
			"a session that is not known",
			facts.call({ tool: "fetch", request: { session: "unknown" } }),
			"session_unknown",
		],
		["no session", facts.call({ tool: "fetch", request: { session: "none" } }), "covered"],
		["more than may be", facts.call({ tool: "fetch", request: { quota: "exceeded" } }), "quota_exceeded"],
	] as const)("%s", (_, question, code) => {
		expect(guard.call(question).code).toBe(code);
	});

	it("an event has the label of the data", () => {
		const pending = [
			facts.event("42", { tool: "search" }, 7),
			facts.event("43", { rpc: "resources/read" }, "a"),
		];
		expect(pending).toEqual([
			{ id: "42", tool: "search", request_id: 7, aud: [`${server}/tools/search`], scope: [] },
			{ id: "43", rpc: "resources/read", request_id: "a", aud: [server], scope: [] },
		]);
		expect(guard.resume(facts.resume({ pending }))).toMatchObject({ code: "covered", deliver: 2 });
		expect(() => facts.event("44", { tool: "toString" })).toThrow(TypeError);
	});

	it("an anonymous session has no claims", () => {
		const { session } = facts.session({ session: { binding: { anonymous: true } }, presented: null });
		expect(session?.binding).toEqual({ anonymous: true });
	});
});

it("the token covers what any data maps", async () => {
	const own: PolicyData = {
		resources: ["mcp://srv"],
		tools: {
			a: { aud: ["mcp://srv/a"], scope: ["a:call"] },
			b: { aud: ["mcp://other"], scope: [] },
			"*": { aud: [], scope: ["rest"] },
		},
		methods: { "prompts/get": { aud: ["mcp://srv/prompts/one"], scope: [] } },
		session_need: { aud: ["mcp://srv"], scope: ["session"] },
		coverage: { "mcp://srv": ["mcp://srv/a", "mcp://srv/prompts/*"] },
	};
	const of = createFacts(own);
	expect(of.session().presented).toMatchObject({
		aud: ["mcp://srv", "mcp://other"],
		scope: ["a:call", "rest", "session"],
	});
	for (const profile of ["strict", "covering", "per-tool"] as const) {
		const decides = await createResumeGuard({ data: { ...own, profile } });
		for (const tool of ["a", "b", "c"]) expect(decides.call(of.call({ tool })).code).toBe("covered");
		expect(decides.call(of.call({ rpc: "prompts/get" })).code).toBe("covered");
		expect(decides.session(of.session()).code).toBe("covered");
	}
});

it("gives no part of itself away", () => {
	const first = facts.resume();
	(first.request as { method: string }).method = "POST";
	(first.session as unknown as { binding: { aud: string[] } }).binding.aud.push("https://elsewhere.example");
	expect(facts.resume()).toMatchObject({
		request: { method: "GET" },
		session: { binding: { aud: [server] } },
	});
});

it("refuses members that the moment does not have, also of those who have no types", () => {
	const loose = facts as unknown as Record<string, (changes: object) => unknown>;
	expect(() => loose.session?.({ tool: "fetch" })).toThrow(
		new TypeError("facts.session: there is no `tool`"),
	);
	expect(() => loose.call?.({ presentd: {} })).toThrow(TypeError);
});
