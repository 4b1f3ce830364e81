import { createMemoryEventLog, type EventLog } from "mcp-resume-guard";
import { describe, expect, test } from "vitest";
import { connect, versions } from "./support/client.ts";
import { type Host, SEARCH, startHost } from "./support/host.ts";
import {
	type Asking,
	ask,
	callAndDrop,
	idsOf,
	initialize,
	messagesOf,
	openSession,
	toolCall,
} from "./support/raw.ts";

async function answer(host: Host, asking: Asking) {
	return (await ask(host, asking)).ended();
}

const asksUser = { ...initialize, params: { ...initialize.params, capabilities: { elicitation: {} } } };

/** A session of alice with a call of `ask` that waits for her answer, and her narrow token that does not cover it. */
async function callAsk(host: Host) {
	const token = await host.mint();
	const opened = await answer(host, { token, body: asksUser });
	const session = opened.headers.get("mcp-session-id") ?? "";
	host.keepSecret(session);
	await answer(host, { token, session, body: { jsonrpc: "2.0", method: "notifications/initialized" } });
	const post = await ask(host, { token, session, body: toolCall(1, "ask") });
	await post.until((reply) => messagesOf(reply).length === 1);
	const [question] = messagesOf(post);
	return { token, session, post, question, narrow: await host.mint({ aud: SEARCH }) };
}

const response = (id: unknown, name: string) => ({
	jsonrpc: "2.0",
	id,
	result: { action: "accept", content: { name } },
});

describe.each(versions)("a client of SDK %s", (version) => {
	test("answers what a tool asks", async () => {
		const host = await startHost();
		const reply = { action: "accept" as const, content: { name: "alice" } };
		const client = await connect(version, host, { answer: async () => reply });
		expect(await client.call("ask").ending).toMatchObject({ text: 'accept {"name":"alice"}' });
	});
});

describe("a narrow token of the session's owner", () => {
	test("cannot answer for a call that it does not cover", async () => {
		const host = await startHost();
		const { token, session, post, question, narrow } = await callAsk(host);
		const refused = await answer(host, { token: narrow, session, body: response(question?.id, "mallory") });
		expect(refused.status).toBe(403);
		expect(JSON.parse(refused.text).error.data).toMatchObject({
			outcome: "reauthorize",
			code: "audience_not_covered",
			held: { tool: "ask" },
		});
		expect(await answer(host, { token, session, body: response(question?.id, "alice") })).toMatchObject({
			status: 202,
		});
		const [, result] = messagesOf(await post.ended());
		expect(result).toMatchObject({ id: 1, result: { content: [{ text: 'accept {"name":"alice"}' }] } });
	});

	test("cannot cancel it", async () => {
		const host = await startHost();
		const { token, session, post, question, narrow } = await callAsk(host);
		const body = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
		expect(await answer(host, { token: narrow, session, body })).toMatchObject({ status: 403 });
		await answer(host, { token, session, body: response(question?.id, "alice") });
		expect(messagesOf(await post.ended())).toHaveLength(2);
	});

	test("cannot reuse its id", async () => {
		const host = await startHost();
		const { session, narrow } = await callAsk(host);
		const refused = await answer(host, {
			token: narrow,
			session,
			body: toolCall(1, "search", { query: "x" }),
		});
		expect(refused.status).toBe(400);
		expect(JSON.parse(refused.text).error.data).toMatchObject({ code: "request_id_in_use" });
	});

	test("cannot hide an answer for it in a batch", async () => {
		const host = await startHost();
		const { session, question, narrow } = await callAsk(host);
		const before = host.emitted.length;
		const body = [toolCall(2, "search", { query: "x" }), response(question?.id, "mallory")];
		expect(await answer(host, { token: narrow, session, body })).toMatchObject({ status: 403 });
		expect(host.emitted).toHaveLength(before);
	});

	test("does not acknowledge away what it does not cover", async () => {
		const acknowledged: string[] = [];
		const events = overheard(createMemoryEventLog(), acknowledged);
		const host = await startHost({ data: { replay: "prefix" }, guard: { events } });
		const token = await host.mint();
		const session = await openSession(host, token);
		const body = [
			toolCall(1, "fetch", { id: "a" }),
			toolCall(2, "search", { query: "x", pages: 3, gate: "rest", gate_after: 2 }),
		];
		const post = await ask(host, { token, session, body });
		// The result of fetch, and two pages of search, in whatever order.
		await post.until((reply) => idsOf(reply).length === 3);
		await host.drop(session);
		const ids = idsOf(post);
		const cursor = ids.at(-1) ?? "";
		const held = messagesOf(post).findIndex(({ id }) => id === 1);

		const narrow = await ask(host, {
			method: "GET",
			token: await host.mint({ aud: SEARCH }),
			session,
			cursor,
		});
		await narrow.until(({ frames }) => frames.length > 0);
		expect(narrow.status).toBe(200);
		expect(acknowledged.filter((id) => ids.indexOf(id) >= held)).toEqual([]);
		narrow.leave();

		const wide = await ask(host, { method: "GET", token, session, cursor });
		await wide.until(({ frames }) => frames.length > 0);
		expect(acknowledged.at(-1)).toBe(cursor);
	});
});

function overheard(events: EventLog, acknowledged: string[]): EventLog {
	return {
		...events,
		acknowledge(session, id) {
			acknowledged.push(id);
			return events.acknowledge(session, id);
		},
	};
}

describe("what refers to nothing is accepted and dropped", () => {
	test.each([
		["an answer", response(77, "x")],
		["an answer with the id of a call", response(1, "x")],
		["an error", { jsonrpc: "2.0", id: 77, error: { code: -1, message: "no" } }],
		["a cancellation", { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 77 } }],
		[
			"a cancellation of the same id with another type",
			{
				jsonrpc: "2.0",
				method: "notifications/cancelled",
				params: { requestId: "1" },
			},
		],
		[
			"progress",
			{ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 77, progress: 1 } },
		],
	])("%s", async (_, body) => {
		const host = await startHost();
		const token = await host.mint();
		const session = await openSession(host, token);
		const args = { id: "a", gate: "text" };
		const cursor = await callAndDrop(host, { token, session, tool: "fetch", args });
		expect(await answer(host, { token, session, body })).toMatchObject({ status: 202, text: "" });
		await host.open(session, "text");
		expect(messagesOf(await answer(host, { method: "GET", token, session, cursor }))).toMatchObject([
			{ id: 1, result: {} },
		]);
	});
});

test("a call that is cancelled ends: its stream does, and its id is free", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const cursor = await callAndDrop(host, { token, session, tool: "fetch", args: { id: "a", gate: "text" } });
	const body = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
	expect(await answer(host, { token, session, body })).toMatchObject({ status: 202 });
	expect(await answer(host, { method: "GET", token, session, cursor })).toMatchObject({
		status: 204,
		end: "clean",
	});
	expect(
		messagesOf(await answer(host, { token, session, body: toolCall(1, "fetch", { id: "b" }) })),
	).toMatchObject([{ id: 1, result: {} }]);
});
