import { expect, test } from "vitest";
import { BOTH, FETCH, type Host, numbersOf, SEARCH, startHost } from "./support/host.ts";
import { type Asking, ask, callAndDrop, idsOf, messagesOf, openSession, toolCall } from "./support/raw.ts";

async function answer(host: Host, asking: Asking) {
	return (await ask(host, asking)).ended();
}

const args = { id: "a", gate: "text" };

test("strict: a token with another audience ends the session, also a narrower one", async () => {
	const host = await startHost({ data: { profile: "strict" } });
	const session = await openSession(host, await host.mint());
	const cursor = await callAndDrop(host, { token: await host.mint(), session, tool: "fetch", args });
	const same = await ask(host, { method: "GET", token: await host.mint(), session, cursor });
	expect(same.status).toBe(200);
	const narrower = await answer(host, {
		method: "GET",
		token: await host.mint({ aud: FETCH }),
		session,
		cursor,
	});
	expect(narrower.status).toBe(403);
	expect(JSON.parse(narrower.text).error.data).toMatchObject({
		code: "binding_drift",
		drift: ["aud"],
		session: "end",
	});
	expect((await same.ended()).end).toBe("cut");
	expect(await answer(host, { method: "GET", token: await host.mint(), session, cursor })).toMatchObject({
		status: 404,
	});
});

test("strict: a call that the session's own token does not cover needs a new session, and this one is kept", async () => {
	const host = await startHost({ data: { profile: "strict" } });
	const token = await host.mint({ aud: SEARCH });
	const session = await openSession(host, token);
	const refused = await answer(host, { token, session, body: toolCall(1, "fetch", { id: "a" }) });
	expect(JSON.parse(refused.text).error.data).toMatchObject({ outcome: "reinitialize", session: "keep" });
	expect(await answer(host, { token, session, body: toolCall(1, "search", { query: "x" }) })).toMatchObject({
		status: 200,
	});
});

test("per-tool: one session, a token for each tool; each stream needs its own", async () => {
	const host = await startHost({ data: { profile: "per-tool" } });
	const [search, fetch] = [await host.mint({ aud: SEARCH }), await host.mint({ aud: FETCH })];
	const session = await openSession(host, search);
	const cursor = await callAndDrop(host, { token: fetch, session, tool: "fetch", args });
	await host.open(session, "text");
	await host.stored(({ tool }) => tool === "fetch");

	expect(
		await answer(host, { token: search, session, body: toolCall(2, "fetch", { id: "a" }) }),
	).toMatchObject({ status: 403 });
	const refused = await answer(host, { method: "GET", token: search, session, cursor });
	expect(refused.status).toBe(403);
	expect(JSON.parse(refused.text).error.data).toMatchObject({
		code: "audience_not_covered",
		required: { aud: [FETCH] },
	});
	expect(messagesOf(await answer(host, { method: "GET", token: fetch, session, cursor }))).toMatchObject([
		{ id: 1, result: {} },
	]);
});

test("covering: a token goes from the whole to a part and back, and never to something else", async () => {
	const host = await startHost();
	const session = await openSession(host, await host.mint({ aud: BOTH }));
	let id = 0;
	for (const aud of [SEARCH, BOTH, [SEARCH, FETCH], BOTH]) {
		const body = toolCall(++id, "search", { query: "x" });
		expect(await answer(host, { token: await host.mint({ aud }), session, body })).toMatchObject({
			status: 200,
		});
	}
	const sideways = await answer(host, {
		method: "DELETE",
		token: await host.mint({ aud: "mcp://srv" }),
		session,
	});
	expect(sideways.status).toBe(403);
});

test("a label is kept with what it was stored for: raising a need holds back what has been produced", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const post = await answer(host, { token, session, body: toolCall(1, "search", { query: "x", pages: 3 }) });
	expect(numbersOf(idsOf(post))).toEqual([2, 3, 4, 5]);
	const labels = host.emitted.flatMap(({ tool }) => tool ?? []);
	expect(labels).toEqual(Array(4).fill("search"));
});
