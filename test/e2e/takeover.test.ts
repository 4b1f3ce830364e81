import { expect, test } from "vitest";
import { numbersOf, SEARCH, startHost } from "./support/host.ts";
import { ask, callAndDrop, cursorOf, idsOf, openSession, toolCall } from "./support/raw.ts";

const args = { query: "x", pages: 6, gate: "rest", gate_after: 3 };

test("a second resume of the same cursor cuts the first, and has each event once", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const last = await callAndDrop(host, { token, session, tool: "search", args }, 4);
	const cursor = last.replace(/\d+$/, "2");
	const first = await ask(host, { method: "GET", token, session, cursor });
	await first.until((reply) => idsOf(reply).length === 2);
	const second = await ask(host, { method: "GET", token, session, cursor });
	expect((await first.ended()).end).toBe("cut");
	await host.open(session, "rest");
	expect((await second.ended()).end).toBe("clean");
	expect(numbersOf(idsOf(first))).toEqual([3, 4]);
	expect(numbersOf(idsOf(second))).toEqual([3, 4, 5, 6, 7, 8]);
});

test("a resume takes the stream from the POST that it was of, if that has not noticed that it is dead", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const post = await ask(host, { token, session, body: toolCall(1, "search", args) });
	await post.until((reply) => idsOf(reply).length === 3);
	const resumed = await ask(host, { method: "GET", token, session, cursor: cursorOf(post) });
	expect((await post.ended()).end).toBe("cut");
	await host.open(session, "rest");
	await resumed.ended();
	expect(numbersOf([...idsOf(post), ...idsOf(resumed)])).toEqual([2, 3, 4, 5, 6, 7, 8]);
});

test("a resume that is refused takes nothing over", async () => {
	const host = await startHost({ data: { foreign_principal: "keep" } });
	const token = await host.mint();
	const session = await openSession(host, token);
	const post = await ask(host, { token, session, body: toolCall(1, "search", args) });
	await post.until((reply) => idsOf(reply).length === 3);
	const cursor = cursorOf(post);
	const refused = [
		{ token: await host.mint({ aud: "https://mcp.example.com/tools/fetch" }), session, cursor },
		{ token: await host.mint({ sub: "mallory" }), session, cursor },
		{ token: await host.mint({ exp: 1 }), session, cursor },
		{ token, session, cursor: cursor.replace(/\d+$/, "99") },
	];
	for (const asking of refused) {
		expect((await ask(host, { method: "GET", ...asking })).status).toBeGreaterThanOrEqual(400);
	}
	await host.open(session, "rest");
	expect((await post.ended()).end).toBe("clean");
	expect(numbersOf(idsOf(post))).toEqual([2, 3, 4, 5, 6, 7, 8]);
});

test("streams of other calls are left alone", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const cursor = await callAndDrop(host, { token, session, tool: "search", args }, 4);
	const other = await ask(host, { token, session, body: toolCall(2, "fetch", { id: "a", gate: "text" }) });
	const resumed = await ask(host, {
		method: "GET",
		token: await host.mint({ aud: SEARCH }),
		session,
		cursor,
	});
	expect(resumed.status).toBe(200);
	await host.open(session, "text");
	expect((await other.ended()).end).toBe("clean");
});
