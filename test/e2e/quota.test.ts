import { createMemoryEventLog, createMemorySessionStore } from "mcp-resume-guard";
import { expect, test } from "vitest";
import { type Host, startHost } from "./support/host.ts";
import { type Asking, ask, initialize, messagesOf, openSession, toolCall } from "./support/raw.ts";

async function answer(host: Host, asking: Asking) {
	return (await ask(host, asking)).ended();
}

const exceeded = { outcome: "refuse", code: "quota_exceeded", session: "keep" };

test("a principal opens as many sessions as it may, and takes none from others", async () => {
	const sessions = createMemorySessionStore({ sessionsPerPrincipal: 2 });
	const host = await startHost({ guard: { sessions } });
	const token = await host.mint();
	const session = await openSession(host, token);
	await openSession(host, token);
	const refused = await answer(host, { token, body: initialize });
	expect(refused.status).toBe(429);
	expect(refused.headers.has("mcp-session-id")).toBe(false);
	expect(refused.headers.get("retry-after")).toBe("5");
	expect(JSON.parse(refused.text).error.data).toMatchObject(exceeded);

	await openSession(host, await host.mint({ sub: "bob" }));
	expect(await answer(host, { method: "DELETE", token, session })).toMatchObject({ status: 204 });
	await openSession(host, token);
});

test("a principal has as many calls open as it may, in all its sessions, and can end them", async () => {
	const events = createMemoryEventLog({ openCallsPerPrincipal: 2 });
	const host = await startHost({ guard: { events } });
	const token = await host.mint();
	const [one, other] = [await openSession(host, token), await openSession(host, token)];
	const waiting = { id: "a", gate: "text" };
	const first = await ask(host, { token, session: one, body: toolCall(1, "fetch", waiting) });
	await ask(host, { token, session: other, body: toolCall(1, "fetch", waiting) });
	const refused = await answer(host, { token, session: other, body: toolCall(2, "fetch", { id: "b" }) });
	expect(refused.status).toBe(429);
	expect(JSON.parse(refused.text).error.data).toMatchObject(exceeded);

	const bob = await host.mint({ sub: "bob" });
	const his = await openSession(host, bob);
	expect(
		await answer(host, { token: bob, session: his, body: toolCall(1, "fetch", { id: "b" }) }),
	).toMatchObject({
		status: 200,
	});

	await host.open(one, "text");
	await first.ended();
	const again = await answer(host, { token, session: other, body: toolCall(2, "fetch", { id: "b" }) });
	expect(messagesOf(again)).toMatchObject([{ id: 2, result: {} }]);
});

test("a client that does not come back does not cost others their events", async () => {
	const events = createMemoryEventLog({ eventsPerPrincipal: 50, events: 100 });
	const host = await startHost({ guard: { events } });
	const token = await host.mint();
	const session = await openSession(host, token);
	const post = await ask(host, { token, session, body: toolCall(1, "fetch", { id: "a", gate: "text" }) });
	await post.until(({ frames }) => frames.length === 1);
	const [primed] = post.frames;
	await host.drop(session);
	await host.open(session, "text");
	await host.stored(({ tool }) => tool === "fetch");

	const bob = await host.mint({ sub: "bob" });
	const his = await openSession(host, bob);
	const gone = await ask(host, {
		token: bob,
		session: his,
		body: toolCall(1, "search", { query: "x", pages: 500 }),
	});
	gone.leave();
	await host.stored(({ id, tool }) => tool === "search" && id.endsWith(".502"));
	const reply = await answer(host, { method: "GET", token, session, cursor: primed?.id ?? "" });
	expect(messagesOf(reply)).toMatchObject([{ id: 1, result: {} }]);
});
