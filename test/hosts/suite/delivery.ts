import { expect, test } from "vitest";
import { sessionKey } from "../../../src/sessions/key.ts";
import { call, told } from "../support/client.ts";
import { FETCH, run, SEARCH, SERVER, type StartHost, token } from "../support/host.ts";
import type { Exchange } from "../support/http.ts";

const fetchOwl = call(8, "fetch", { id: "owl", gate: "turn" });
/** One stream for two calls, of which the second waits until the test opens the gate `turn`. */
const searchAndFetch = [call(7, "search", { query: "owls", pages: 2 }), fetchOwl];
const owl = "the text of document owl";

/** The decision in the body of a refusal. */
async function decisionOf(exchange: Exchange): Promise<unknown> {
	return JSON.parse(await exchange.text()).error.data;
}

export function deliveryTests(start: StartHost): void {
	test("a call that the token does not cover does not reach the server", async () => {
		const host = await run(start);
		const client = await host.open(await token());

		const refused = await client.post(await token({ aud: SEARCH }), fetchOwl);

		expect(refused.status).toBe(403);
		expect(refused.headers["www-authenticate"]).toBe(
			`Bearer error="insufficient_scope", resource_metadata="${SERVER}/.well-known/oauth-protected-resource"`,
		);
		expect(await decisionOf(refused)).toEqual({
			outcome: "reauthorize",
			code: "audience_not_covered",
			drift: [],
			session: "keep",
			status: 403,
			required: { aud: [FETCH], scope: [] },
			held: { tool: "fetch", missing: { aud: [FETCH], scope: [] } },
		});
	});

	test("a narrower token is refused in stages, and a wider one goes on from the same cursor", async () => {
		const host = await run(start);
		const wide = await token();
		const narrow = await token({ aud: SEARCH });
		const client = await host.open(wide);
		const posted = await client.post(wide, fetchOwl);
		await posted.count(1);
		await host.drop(client, posted);
		host.gates.open(client.session, "turn");
		await host.log.appended(owl);
		const { cursor = "" } = posted;
		const decision = {
			outcome: "reauthorize",
			code: "audience_not_covered",
			deliver: 0,
			cursor,
			held: {
				event_id: cursor.replace(/1$/, "2"),
				tool: "fetch",
				request_id: 8,
				missing: { aud: [FETCH], scope: [] },
			},
			required: { aud: [FETCH], scope: [] },
			drift: [],
			session: "keep",
			status: 403,
		};

		const first = await client.get(narrow, cursor);
		expect(first.status).toBe(403);
		expect(first.headers["www-authenticate"]).toContain('Bearer error="insufficient_scope"');
		expect(await decisionOf(first)).toEqual(decision);

		// Not the token counts but what it may: a refresh to the same does not start over.
		for (const again of [narrow, await token({ aud: SEARCH, jti: "2" })]) {
			const second = await client.get(again, cursor);
			expect(await second.closed).toBe("ended");
			expect(second.status).toBe(200);
			expect(told(second)).toEqual(["- event: error", "- 8 ! reauthorize: audience_not_covered"]);
			expect(second.events.map(({ data }) => JSON.parse(data))).toEqual([
				decision,
				{
					jsonrpc: "2.0",
					id: 8,
					error: { code: -32043, message: "reauthorize: audience_not_covered", data: decision },
				},
			]);
			expect(first.bytes.includes(owl) || second.bytes.includes(owl)).toBe(false);
		}

		const resumed = await client.get(await token({ aud: FETCH }), cursor);
		expect(await resumed.closed).toBe("ended");
		expect(told(resumed)).toEqual(["#1 cursor", `#2 8 = ${owl}`]);
	});

	test("a call that is still running holds a resume back", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, fetchOwl);
		await posted.count(1);
		await host.drop(client, posted);

		const refused = await client.get(await token({ aud: SEARCH }), posted.cursor);

		expect(refused.status).toBe(403);
		expect(await decisionOf(refused)).toMatchObject({
			deliver: 0,
			held: { tool: "fetch", request_id: 8, missing: { aud: [FETCH], scope: [] } },
		});
	});

	test("a prefix goes out as far as it is covered, and the rest under a wider token", async () => {
		const host = await run(start, { data: { replay: "prefix" } });
		const wide = await token();
		const narrow = await token({ aud: SEARCH });
		const client = await host.open(wide);
		const posted = await client.post(wide, searchAndFetch);
		await posted.count(2);
		const cursor = posted.events[1]?.id;
		await host.drop(client, posted);
		host.gates.open(client.session, "turn");
		await host.log.appended(owl);

		const prefix = await client.get(narrow, cursor);
		expect(await prefix.closed).toBe("ended");
		expect(prefix.status).toBe(200);
		expect(told(prefix)).toEqual([
			"#2 cursor",
			"#3 of 7: page 2",
			"#4 7 = 2 pages about owls",
			"- event: error",
			"- 8 ! reauthorize: audience_not_covered",
		]);
		expect(await prefix.text()).toContain("\nretry: 1000\n");
		expect(prefix.bytes.includes(owl)).toBe(false);

		expect((await client.get(narrow, prefix.cursor)).status).toBe(403);
		const second = await client.get(narrow, prefix.cursor);
		expect(await second.closed).toBe("ended");
		expect(told(second)).toEqual(["- event: error", "- 8 ! reauthorize: audience_not_covered"]);

		const resumed = await client.get(wide, prefix.cursor);
		expect(await resumed.closed).toBe("ended");
		expect(told(resumed)).toEqual(["#4 cursor", `#5 8 = ${owl}`]);
	});

	test("after a prefix without a response, the refusal comes in stages, for each call that waits", async () => {
		const host = await run(start, { data: { replay: "prefix" } });
		const wide = await token();
		const narrow = await token({ aud: SEARCH });
		const client = await host.open(wide);
		const search = call(7, "search", { query: "owls", pages: 2, gate: "late", gate_after: 1 });
		const posted = await client.post(wide, [search, fetchOwl]);
		await posted.count(2);
		const first = posted.events[0]?.id;
		await host.drop(client, posted);
		host.gates.open(client.session, "turn");
		await host.log.appended(owl);

		const prefix = await client.get(narrow, first);
		expect(await prefix.closed).toBe("ended");
		expect(told(prefix)).toEqual(["#1 cursor", "#2 of 7: page 1", "- event: error"]);
		expect((await client.get(narrow, prefix.cursor)).status).toBe(403);
		const second = await client.get(narrow, prefix.cursor);
		expect(await second.closed).toBe("ended");
		expect(told(second).toSorted()).toEqual([
			"- 7 ! reauthorize: audience_not_covered",
			"- 8 ! reauthorize: audience_not_covered",
			"- event: error",
		]);

		host.gates.open(client.session, "late");
		const resumed = await client.get(wide, prefix.cursor);
		expect(await resumed.closed).toBe("ended");
		expect(told(resumed)).toEqual([
			"#2 cursor",
			`#3 8 = ${owl}`,
			"#4 of 7: page 2",
			"#5 7 = 2 pages about owls",
		]);
	});

	test("a live stream is cut before the first byte of an event that is not covered", async () => {
		const host = await run(start, { data: { replay: "prefix" } });
		const wide = await token();
		const narrow = await token({ aud: SEARCH });
		const client = await host.open(wide);
		const posted = await client.post(wide, searchAndFetch);
		await posted.count(2);
		const cursor = posted.events[1]?.id;
		await host.log.appended("2 pages about owls");
		await host.drop(client, posted);

		const live = await client.get(narrow, cursor);
		await live.count(3);
		host.gates.open(client.session, "turn");

		expect(await live.closed).toBe("cut");
		expect(told(live)).toEqual(["#2 cursor", "#3 of 7: page 2", "#4 7 = 2 pages about owls"]);
		expect(live.bytes.includes(owl)).toBe(false);
		expect((await client.get(narrow, live.cursor)).status).toBe(403);
		const resumed = await client.get(wide, live.cursor);
		expect(await resumed.closed).toBe("ended");
		expect(told(resumed)).toEqual(["#4 cursor", `#5 8 = ${owl}`]);
	});

	test("a narrow token neither cancels a call that it does not cover, nor takes its id", async () => {
		const host = await run(start);
		const wide = await token();
		const narrow = await token({ aud: SEARCH });
		const client = await host.open(wide);
		const posted = await client.post(wide, fetchOwl);
		await posted.count(1);
		const cancelled = {
			jsonrpc: "2.0",
			method: "notifications/cancelled",
			params: { requestId: 8, reason: "because" },
		};

		expect((await client.post(narrow, cancelled)).status).toBe(403);
		const reused = await client.post(narrow, call(8, "search", { query: "owls", pages: 0 }));
		expect(reused.status).toBe(400);
		expect(await decisionOf(reused)).toMatchObject({ code: "request_id_in_use", session: "keep" });

		host.gates.open(client.session, "turn");
		expect(await posted.closed).toBe("ended");
		expect(told(posted)).toEqual(["#1 cursor", `#2 8 = ${owl}`]);
	});

	test("a call without an id is no notification", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const { id: _, ...withoutId } = call(7, "fetch", { id: "owl" }) as { id: number };
		expect((await client.post(wide, withoutId)).status).toBe(400);
	});

	test("the id of a call whose result waits is in use for everyone, until the result is out", async () => {
		const host = await run(start);
		const [wide, narrow] = [await token(), await token({ aud: SEARCH })];
		const client = await host.open(wide);
		const posted = await client.post(wide, call(7, "fetch", { id: "owl", gate: "turn" }));
		await posted.count(1);
		await host.drop(client, posted);
		host.gates.open(client.session, "turn");
		await host.log.appended("the text of document owl");

		const again = call(7, "search", { query: "owls", pages: 0 });
		for (const bearer of [narrow, wide]) {
			const refused = await client.post(bearer, again);
			expect(refused.status).toBe(400);
			expect(await refused.text()).toContain("request_id_in_use");
		}
		expect(await (await client.get(wide, posted.cursor)).text()).toContain("the text of document owl");
		expect(await (await client.post(narrow, again)).text()).toContain("0 pages about owls");
	});

	test("a narrow token does not answer what a call that it does not cover has asked", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, call(8, "confirm"));
		await posted.count(2);
		const { id } = JSON.parse(posted.events[1]?.data ?? "");
		const answer = (action: string) => ({ jsonrpc: "2.0", id, result: { action, content: {} } });

		expect((await client.post(await token({ aud: SEARCH }), answer("decline"))).status).toBe(403);
		expect((await client.post(wide, answer("accept"))).status).toBe(202);

		expect(await posted.closed).toBe("ended");
		expect(told(posted)).toEqual([
			"#1 cursor",
			"#2 elicitation/create: Sure?",
			"#3 8 = the answer was accept",
		]);
	});

	test("a narrow token acknowledges nothing that it does not cover", async () => {
		const host = await run(start, { data: { replay: "prefix" } });
		const wide = await token();
		const client = await host.open(wide);
		const search = call(7, "search", { query: "owls", pages: 1, gate: "late" });
		host.gates.open(client.session, "turn");
		const posted = await client.post(wide, [fetchOwl, search]);
		await posted.count(2);
		const { cursor = "" } = posted;
		await host.drop(client, posted);
		const unacknowledged = async () =>
			(await host.log.unacknowledged(sessionKey(client.session), cursor)).map(({ id }) => id);

		const narrow = await client.get(await token({ aud: SEARCH }), cursor);
		expect(narrow.status).toBe(200);
		expect(await unacknowledged()).toEqual([cursor]);

		const resumed = await client.get(wide, cursor);
		expect(resumed.status).toBe(200);
		expect(await unacknowledged()).toEqual([]);
	});
}
