import { createMemoryEventLog } from "mcp-resume-guard";
import { describe, expect, test } from "vitest";
import { connect, dropAndReturn, versions } from "./support/client.ts";
import { BOTH, FETCH, type Host, numbersOf, startHost } from "./support/host.ts";
import {
	type Asking,
	ask,
	cursorOf,
	idsOf,
	messagesOf,
	openSession,
	type Reply,
	toolCall,
} from "./support/raw.ts";

async function answer(host: Host, asking: Asking) {
	return (await ask(host, asking)).ended();
}

async function announce(host: Host, token: string, session: string, times: number): Promise<void> {
	await answer(host, { token, session, body: toolCall(crypto.randomUUID(), "announce", { times }) });
}

/** What tells a client that it has come: the cursor in an event without data. */
function open(reply: Reply): Promise<Reply> {
	return reply.until(({ frames }) => frames.length > 0);
}

describe.each(versions)("a client of SDK %s", (version) => {
	test("has what the server says to the session, also what it says while the client is away", async () => {
		const host = await startHost();
		const client = await connect(version, host);
		await client.recorder.exchange(({ method, text }) => method === "GET" && text !== "");
		await client.call("announce", { times: 2 }).ending;
		await client.recorder.until(() => client.notified.length === 2);

		const token = await host.mint();
		await dropAndReturn(host, client, token, () => announce(host, token, client.session, 3));
		await client.recorder.until(() => client.notified.length >= 5);
		await client.call("announce").ending;
		await client.recorder.until(() => client.notified.length >= 6);
		expect(client.notified).toEqual(Array(6).fill("notifications/tools/list_changed"));
	});
});

test("a session has one stream of its own; a second is refused while the first is open", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const first = await open(await ask(host, { method: "GET", token, session }));
	expect(await answer(host, { method: "GET", token, session })).toMatchObject({ status: 409 });
	await announce(host, token, session, 1);
	await first.until((reply) => messagesOf(reply).length === 1);
	await host.drop(session);
	await first.ended();
	expect((await ask(host, { method: "GET", token, session })).status).toBe(200);
});

test("a client that comes without a cursor is told all that it is not known to have", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	await announce(host, token, session, 2);
	const first = await open(await ask(host, { method: "GET", token, session }));
	await announce(host, token, session, 1);
	await first.until((reply) => messagesOf(reply).length === 3);
	await host.drop(session);
	await first.ended();
	await announce(host, token, session, 2);
	const second = await ask(host, { method: "GET", token, session });
	await second.until((reply) => messagesOf(reply).length === 5);
	expect(numbersOf(idsOf(second))).toEqual([2, 3, 4, 5, 6]);

	await host.drop(session);
	await second.ended();
	const acknowledged = await open(
		await ask(host, { method: "GET", token, session, cursor: idsOf(second)[2] ?? "" }),
	);
	await acknowledged.until((reply) => messagesOf(reply).length === 2);
	await host.drop(session);
	await acknowledged.ended();
	const third = await ask(host, { method: "GET", token, session });
	await third.until((reply) => messagesOf(reply).length === 2);
	expect(numbersOf(idsOf(third))).toEqual([5, 6]);
});

test("a client that comes without a cursor is told that something had to go, and has the rest", async () => {
	const events = createMemoryEventLog({ eventsPerPrincipal: 8 });
	const host = await startHost({ guard: { events } });
	const token = await host.mint();
	const session = await openSession(host, token);
	await announce(host, token, session, 12);
	const first = await ask(host, { method: "GET", token, session });
	await announce(host, token, session, 1);
	await first.until(({ frames }) => frames.some(({ event }) => event === "error"));
	await first.until((reply) => numbersOf(idsOf(reply)).at(-1) === 14);

	const [told, ...rest] = first.frames;
	expect(JSON.parse(told?.data ?? "")).toMatchObject({ outcome: "reissue", code: "cursor_evicted" });
	const numbers = numbersOf(idsOf(first));
	expect(rest).toHaveLength(numbers.length);
	expect(numbers).toEqual(Array.from(numbers, (_, index) => 15 - numbers.length + index));
	expect(numbers.length).toBeGreaterThan(1);
	expect(host.logged.some((line) => line.includes("cursor_evicted"))).toBe(true);

	await host.drop(session);
	await first.ended();
	await announce(host, token, session, 1);
	const second = await ask(host, { method: "GET", token, session });
	await second.until((reply) => numbersOf(idsOf(reply)).at(-1) === 15);
	expect(second.frames[0]?.event).toBe("error");
	// What the first was sent as well: nobody knows that it has it.
	const again = numbersOf(idsOf(second));
	expect(again.length).toBeGreaterThan(2);
	expect(again).toEqual(Array.from(again, (_, index) => 16 - again.length + index));
});

test("a client that comes without a cursor, and is not covered for what waits, is told so, each time", async () => {
	const host = await startHost();
	const [wide, narrow] = [await host.mint(), await host.mint({ aud: FETCH })];
	const session = await openSession(host, wide);
	await answer(host, { token: wide, session, body: toolCall(1, "mutter") });
	for (const attempt of [1, 2]) {
		const refused = await answer(host, { method: "GET", token: narrow, session });
		expect([attempt, refused.status]).toEqual([attempt, 403]);
		expect(JSON.parse(refused.text).error.data).toMatchObject({ outcome: "reauthorize", deliver: 0 });
	}
	const covered = await ask(host, { method: "GET", token: wide, session });
	await covered.until((reply) => messagesOf(reply).length === 1);
});

test("what a connection that died was sent is there for the next, also if it had no cursor", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	await announce(host, token, session, 6);
	for (const patience of [0, 50]) {
		const dead = await ask(host, { method: "GET", token, session });
		if (patience > 0) await open(dead);
		dead.leave();
		await host.drop(session);
	}
	const next = await ask(host, { method: "GET", token, session });
	await next.until((reply) => messagesOf(reply).length === 6);
	expect(numbersOf(idsOf(next))).toEqual([2, 3, 4, 5, 6, 7]);
});

test("it is resumed from its cursor, and does not end when it has caught up", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const first = await open(await ask(host, { method: "GET", token, session }));
	const cursor = cursorOf(first);
	await host.drop(session);
	await first.ended();
	await announce(host, token, session, 2);
	const second = await ask(host, { method: "GET", token, session, cursor });
	await second.until((reply) => messagesOf(reply).length === 2);
	await announce(host, token, session, 1);
	await second.until((reply) => messagesOf(reply).length === 3);
	expect(numbersOf(idsOf(second))).toEqual([2, 3, 4]);
	expect(second.end).toBe("open");
	expect(cursorOf(first)).toBe(cursor);
});

test("a token that does not cover what the session needs is refused with a challenge, each time anew", async () => {
	const need = "https://mcp.example.com/session";
	const host = await startHost({ data: { session_need: { aud: [need], scope: [] } } });
	const wide = await host.mint({ aud: [BOTH, need] });
	const session = await openSession(host, wide);
	const stream = await open(await ask(host, { method: "GET", token: wide, session }));
	const cursor = cursorOf(stream);
	await host.drop(session);
	await announce(host, wide, session, 1);
	for (let round = 0; round < 3; round++) {
		const reply = await answer(host, { method: "GET", token: await host.mint(), session, cursor });
		expect(reply.status).toBe(403);
		expect(reply.headers.get("www-authenticate")).toMatch(/error="insufficient_scope"/);
		expect(JSON.parse(reply.text).error.data).toMatchObject({
			held: { missing: { aud: [need], scope: [] } },
		});
	}
	const reply = await ask(host, { method: "GET", token: wide, session, cursor });
	await reply.until((reply) => messagesOf(reply).length === 1);
});
