import { createMemoryEventLog } from "mcp-resume-guard";
import { describe, expect, test } from "vitest";
import { connect, dropAndReturn, versions } from "./support/client.ts";
import { numbersOf, refusals, startHost } from "./support/host.ts";
import { ask, callAndDrop, cursorOf, idsOf, openSession, toolCall } from "./support/raw.ts";

describe.each(versions)("a client of SDK %s whose cursor has been evicted", (version) => {
	test("is told to call again, and its session goes on", async () => {
		const events = createMemoryEventLog({ eventsPerPrincipal: 8 });
		const host = await startHost({ guard: { events } });
		const client = await connect(version, host);
		const call = client.call("search", { query: "x", pages: 20, gate: "rest", gate_after: 2 });
		await client.has(call, 3);
		await dropAndReturn(host, client, await host.mint(), async () => {
			await host.open(client.session, "rest");
			await host.stored(({ id, tool }) => tool === "search" && id.endsWith(".22"));
		});

		const { error } = await call.ending;
		expect(error).toMatchObject({
			code: -32043,
			data: { outcome: "reissue", code: "cursor_evicted", session: "keep", deliver: 0, cursor: call.cursor },
		});
		expect(numbersOf([call.cursor])).toEqual([3]);
		expect(events.stats().evictedUnacknowledged).toBeGreaterThan(0);
		await client.ping();
	});
});

test("an evicted cursor that no call waits for is answered 410", async () => {
	const events = createMemoryEventLog({ eventsPerPrincipal: 8 });
	const host = await startHost({ guard: { events } });
	const token = await host.mint();
	const session = await openSession(host, token);
	const own = await ask(host, { method: "GET", token, session });
	await own.until(({ frames }) => frames.length > 0);
	own.leave();
	await (await ask(host, { token, session, body: toolCall(1, "announce", { times: 12 }) })).ended();
	const reply = await (await ask(host, { method: "GET", token, session, cursor: cursorOf(own) })).ended();
	expect(reply.status).toBe(410);
	expect(JSON.parse(reply.text).error.data).toMatchObject({ outcome: "reissue", code: "cursor_evicted" });
});

test("a cursor that was never sent to anybody is refused: ahead of the newest, or stored and not written", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const args = { query: "x", pages: 5, gate: "rest", gate_after: 2 };
	const cursor = await callAndDrop(host, { token, session, tool: "search", args }, 3);
	await host.open(session, "rest");
	await host.stored(({ id }) => id.endsWith(".7"));
	for (const n of [4, 7, 8, 1_000_000]) {
		const guessed = cursor.replace(/\d+$/, String(n));
		const reply = await (await ask(host, { method: "GET", token, session, cursor: guessed })).ended();
		expect(reply.status).toBe(400);
		expect(JSON.parse(reply.text).error.data).toMatchObject({ outcome: "refuse", code: "cursor_ahead" });
	}
	const reply = await (await ask(host, { method: "GET", token, session, cursor })).ended();
	expect(numbersOf(idsOf(reply))).toEqual([4, 5, 6, 7]);
});

test("a cursor of another session is answered as one that does not exist, also on the sessions' own streams", async () => {
	const host = await startHost();
	const token = await host.mint();
	const [one, other] = [await openSession(host, token), await openSession(host, token)];
	const own = await ask(host, { method: "GET", token, session: one });
	await own.until(({ frames }) => frames.length > 0);
	await (await ask(host, { token, session: one, body: toolCall(1, "announce", { times: 3 }) })).ended();
	await own.until(({ frames }) => frames.length === 4);
	const call = await callAndDrop(host, {
		token,
		session: one,
		tool: "fetch",
		args: { id: "a", gate: "text" },
	});
	const [first = ""] = idsOf(own);

	const answers = [];
	for (const cursor of [first, call, "nothing", "_GET_stream_1", "x".repeat(10_000)]) {
		const reply = await (await ask(host, { method: "GET", token, session: other, cursor })).ended();
		answers.push({ status: reply.status, body: reply.text.replace(JSON.stringify(cursor), '""') });
	}
	expect(answers).toEqual(Array(5).fill(answers[0]));
	expect(answers[0]?.status).toBe(400);
	expect(JSON.parse(answers[0]?.body ?? "").error.data).toMatchObject({
		outcome: "reissue",
		code: "cursor_unknown",
	});
	expect(refusals(host)).toEqual(Array(5).fill("resume cursor_unknown"));
	const positions = host.logged.flatMap((line) => JSON.parse(line).mcp?.position ?? []);
	expect(positions).toEqual(["foreign", "foreign", "unknown", "unknown", "unknown"]);
});

test("a resume from the same cursor can be repeated as often as it takes", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const args = { query: "x", pages: 5, gate: "rest", gate_after: 2 };
	const cursor = await callAndDrop(host, { token, session, tool: "search", args }, 3);
	await host.open(session, "rest");
	await host.stored(({ id }) => id.endsWith(".7"));
	for (let round = 0; round < 3; round++) {
		const reply = await (await ask(host, { method: "GET", token, session, cursor })).ended();
		expect(numbersOf(idsOf(reply))).toEqual([4, 5, 6, 7]);
	}
});
