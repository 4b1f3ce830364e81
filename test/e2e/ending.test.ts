import { describe, expect, test } from "vitest";
import { connect, versions } from "./support/client.ts";
import { type Host, SEARCH, startHost } from "./support/host.ts";
import { type Asking, ask, callAndDrop, cursorOf, idsOf, openSession, toolCall } from "./support/raw.ts";

async function answer(host: Host, asking: Asking) {
	return (await ask(host, asking)).ended();
}

const waiting = { id: "a", gate: "text" };

/** A session with every kind of stream open: its own, a POST and a resumed one. */
async function openStreams(host: Host) {
	const token = await host.mint();
	const session = await openSession(host, token);
	const cursor = await callAndDrop(host, { token, session, tool: "fetch", args: waiting });
	const resumed = await ask(host, { method: "GET", token, session, cursor });
	const own = await ask(host, { method: "GET", token, session });
	const post = await ask(host, { token, session, body: toolCall(2, "fetch", waiting) });
	const streams = [own, post, resumed];
	for (const stream of streams) await stream.until(({ frames }) => frames.length === 1);
	return { token, session, streams };
}

async function expectGone(host: Host, token: string, session: string, cursor: string): Promise<void> {
	const uses: Asking[] = [
		{ method: "GET" },
		{ method: "GET", cursor },
		{ body: toolCall(3, "fetch", { id: "a" }) },
		{ method: "DELETE" },
	];
	for (const use of uses) {
		const reply = await answer(host, { token, session, ...use });
		expect(reply.status).toBe(404);
		expect(reply.headers.has("mcp-session-id")).toBe(false);
	}
}

describe.each(versions)("a client of SDK %s", (version) => {
	test("ends its session", async () => {
		const host = await startHost();
		const client = await connect(version, host);
		await client.call("fetch", { id: "a" }).ending;
		const { session } = client;
		await client.terminateSession();
		await expectGone(host, await host.mint(), session, "x.y.1");
	});

	test("is told with its next request that its session has ended", async () => {
		const host = await startHost();
		const client = await connect(version, host);
		await host.app.resumeGuard.endSessions({ sub: "alice" });
		const { error } = await client.call("fetch", { id: "a" }).ending;
		expect(error?.message).toMatch(/Session not found/);
	});
});

test("a DELETE ends the session: its streams are cut, and its id is known no more", async () => {
	const host = await startHost();
	const { token, session, streams } = await openStreams(host);
	expect(await answer(host, { method: "DELETE", token, session })).toMatchObject({ status: 204, text: "" });
	for (const stream of streams) expect((await stream.ended()).end).toBe("cut");
	await host.open(session, "text");
	for (const stream of streams) {
		expect(idsOf(stream)).toEqual([]);
		await expectGone(host, token, session, cursorOf(stream));
	}
});

test("a DELETE is the owner's own logout: a token that covers little will do", async () => {
	const host = await startHost();
	const session = await openSession(host, await host.mint());
	const token = await host.mint({ aud: SEARCH });
	expect(await answer(host, { method: "DELETE", token, session })).toMatchObject({ status: 204 });
});

test("endSessions ends those that match, and no others", async () => {
	const host = await startHost();
	const alice = await openStreams(host);
	const phone = await host.mint({ client_id: "phone" });
	const bob = await host.mint({ sub: "bob" });
	const others = [
		{ token: phone, session: await openSession(host, phone) },
		{ token: bob, session: await openSession(host, bob) },
	];
	expect(await host.app.resumeGuard.endSessions({ sub: "alice", client_id: "desktop" })).toBe(1);
	for (const stream of alice.streams) {
		expect((await stream.ended()).end).toBe("cut");
		await expectGone(host, alice.token, alice.session, cursorOf(stream));
	}
	for (const { token, session } of others) {
		const body = toolCall(1, "fetch", { id: "a" });
		expect(await answer(host, { token, session, body })).toMatchObject({ status: 200 });
	}
	await expect(host.app.resumeGuard.endSessions({})).rejects.toThrow(TypeError);
});

test("the host closes while streams are open", async () => {
	const host = await startHost();
	const { streams } = await openStreams(host);
	await host.app.close();
	for (const stream of streams) expect((await stream.ended()).end).toBe("cut");
});
