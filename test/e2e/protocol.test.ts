import { describe, expect, test } from "vitest";
import { connect } from "./support/client.ts";
import { type Host, refusals, SEARCH, startHost } from "./support/host.ts";
import { type Asking, ask, idsOf, initialize, messagesOf, openSession, toolCall } from "./support/raw.ts";

async function answer(host: Host, asking: Asking) {
	return (await ask(host, asking)).ended();
}

/** A session with a call that waits, and the reply that its events come on. */
async function openAndCall(host: Host, id: string | number = 1) {
	const token = await host.mint();
	const session = await openSession(host, token);
	const post = await ask(host, { token, session, body: toolCall(id, "fetch", { id: "a", gate: "text" }) });
	await post.until(({ frames }) => frames.length === 1);
	return { token, session, post };
}

describe("a method that the endpoint does not have", () => {
	test.each(["HEAD", "PUT", "PATCH", "OPTIONS"])("is answered 405: %s", async (method) => {
		const host = await startHost();
		const { token, session, post } = await openAndCall(host);
		const [primed] = post.frames;
		const reply = await answer(host, { method, token, session, cursor: primed?.id ?? "" });
		expect(reply.status).toBe(405);
		expect(reply.headers.get("allow")).toBe("GET, POST, DELETE");

		// Nothing was taken over.
		await host.open(session, "text");
		expect(messagesOf(await post.ended())).toMatchObject([{ id: 1, result: {} }]);
	});
});

describe("a browser", () => {
	const origin = "https://app.example.com";

	test.each(["GET", "POST", "DELETE", "OPTIONS"])(
		"of an origin that is not allowed is refused: %s",
		async (method) => {
			const host = await startHost({ guard: { allowedOrigins: [origin] } });
			const token = await host.mint();
			const session = await openSession(host, token);
			const body = method === "POST" ? { body: toolCall(1, "fetch", { id: "a" }) } : {};
			for (const wrong of ["https://evil.example.com", "null"]) {
				const reply = await answer(host, { method, token, session, ...body, headers: { origin: wrong } });
				expect(reply.status).toBe(403);
				expect(reply.headers.has("access-control-allow-origin")).toBe(false);
			}
			expect(await answer(host, { token, session, body: toolCall(1, "fetch", { id: "a" }) })).toMatchObject({
				status: 200,
			});
		},
	);

	test("of an allowed origin may read the headers that it needs", async () => {
		const host = await startHost({ guard: { allowedOrigins: [origin] } });
		const token = await host.mint();
		const headers = { origin };
		const preflight = await answer(host, { method: "OPTIONS", headers });
		expect(preflight.status).toBe(204);
		expect(preflight.headers.get("access-control-allow-headers")).toMatch(
			/Authorization.*Mcp-Session-Id.*Last-Event-ID/,
		);

		const replies = [
			await answer(host, { token, body: initialize, headers }),
			await answer(host, { body: initialize, headers }),
			await answer(host, { method: "GET", token, headers }),
		];
		expect(replies.map(({ status }) => status)).toEqual([200, 401, 400]);
		for (const reply of [preflight, ...replies]) {
			expect(reply.headers.get("access-control-allow-origin")).toBe(origin);
			expect(reply.headers.get("vary")).toMatch(/origin/i);
		}
		for (const reply of replies) {
			expect(reply.headers.get("access-control-expose-headers")).toMatch(/Mcp-Session-Id.*WWW-Authenticate/);
		}
	});

	test("that was sent to another name of this host is refused", async () => {
		const host = await startHost({ guard: { allowedHosts: ["mcp.example.com"] } });
		expect(await answer(host, { token: await host.mint(), body: initialize })).toMatchObject({ status: 403 });
	});
});

test("a GET has to accept text/event-stream, and speak a revision that is spoken here", async () => {
	const host = await startHost();
	const { token, session, post } = await openAndCall(host);
	const cursor = idsOf(post).at(-1) ?? post.frames[0]?.id ?? "";
	for (const accept of ["application/json", "*/*", null]) {
		const headers = { accept: accept ?? "text/html" };
		expect(await answer(host, { method: "GET", token, session, cursor, headers })).toMatchObject({
			status: 406,
		});
	}
	const headers = { "mcp-protocol-version": "1999-01-01" };
	expect(await answer(host, { method: "GET", token, session, cursor, headers })).toMatchObject({
		status: 400,
	});
	expect(
		await answer(host, { token, session, headers, body: toolCall(2, "fetch", { id: "a" }) }),
	).toMatchObject({
		status: 400,
	});
	await host.open(session, "text");
	expect(messagesOf(await post.ended())).toMatchObject([{ id: 1, result: {} }]);
});

test("a request that the MCP server refuses leaves its id free", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	const body = toolCall(1, "fetch", { id: "a" });
	expect(await answer(host, { token, session, body, headers: { accept: "application/json" } })).toMatchObject(
		{
			status: 406,
		},
	);
	expect(messagesOf(await answer(host, { token, session, body }))).toMatchObject([{ id: 1, result: {} }]);
});

describe("the id of a call that is open", () => {
	test.each([
		["a call of the same tool", toolCall(1, "fetch", { id: "b" })],
		["a call of another tool", toolCall(1, "search", { query: "x" })],
		["a ping", { jsonrpc: "2.0", id: 1, method: "ping" }],
		["a call in a batch", [toolCall(2, "search", { query: "x" }), toolCall(1, "search", { query: "x" })]],
	])("is not given away to %s", async (_, body) => {
		const host = await startHost();
		const { token, session, post } = await openAndCall(host);
		const before = host.emitted.length;
		const reply = await answer(host, { token, session, body });
		expect(reply.status).toBe(400);
		expect(JSON.parse(reply.text).error.data).toMatchObject({ outcome: "refuse", code: "request_id_in_use" });
		expect(host.emitted).toHaveLength(before);

		await host.open(session, "text");
		const messages = messagesOf(await post.ended());
		expect(messages).toMatchObject([{ id: 1, result: { content: [{ text: "the text of document a" }] } }]);
	});

	test("is another id if it is of another type, and free when the call has ended", async () => {
		const host = await startHost();
		const { token, session, post } = await openAndCall(host);
		const text = await answer(host, { token, session, body: toolCall("1", "fetch", { id: "b" }) });
		expect(messagesOf(text)).toMatchObject([{ id: "1", result: {} }]);
		await host.open(session, "text");
		await post.ended();
		const again = await answer(host, { token, session, body: toolCall(1, "fetch", { id: "c" }) });
		expect(messagesOf(again)).toMatchObject([{ id: 1, result: {} }]);
	});

	test("may not be there twice in a batch", async () => {
		const host = await startHost();
		const token = await host.mint();
		const session = await openSession(host, token);
		const body = [toolCall(1, "search", { query: "x" }), toolCall(1, "fetch", { id: "a" })];
		const reply = await answer(host, { token, session, body });
		expect(JSON.parse(reply.text).error.data).toMatchObject({ code: "request_id_in_use" });
	});
});

test("a batch is decided whole: none of it runs if one of it is refused", async () => {
	const host = await startHost();
	const token = await host.mint({ aud: SEARCH });
	const session = await openSession(host, token);
	const before = host.emitted.length;
	const body = [toolCall(1, "search", { query: "x" }), toolCall(2, "fetch", { id: "a" })];
	const refused = await answer(host, { token, session, body });
	expect(refused.status).toBe(403);
	expect(JSON.parse(refused.text).error.data).toMatchObject({
		code: "audience_not_covered",
		held: { tool: "fetch" },
	});
	expect(host.emitted).toHaveLength(before);

	const both = await answer(host, { token: await host.mint(), session, body });
	expect(
		messagesOf(both)
			.flatMap(({ id }) => id ?? [])
			.sort(),
	).toEqual([1, 2]);
});

test("a tool or a method that data does not map is refused", async () => {
	const host = await startHost();
	const token = await host.mint();
	const session = await openSession(host, token);
	for (const body of [
		...["delete_everything", "__proto__", "constructor", "toString", ""].map((tool) => toolCall(1, tool)),
		{ jsonrpc: "2.0", id: 2, method: "resources/read", params: { uri: "file:///x" } },
		{ jsonrpc: "2.0", id: 3, method: "tasks/result", params: { taskId: "x" } },
	]) {
		const reply = await answer(host, { token, session, body });
		expect(reply.status).toBe(403);
		expect(JSON.parse(reply.text).error.data).toMatchObject({ outcome: "refuse", code: "tool_unmapped" });
	}
});

describe("an initialize", () => {
	test("does not bind a session again that exists", async () => {
		const host = await startHost({ data: { foreign_principal: "keep" } });
		const client = await connect("v2", host);
		const { session } = client;
		const again = await answer(host, { token: await host.mint(), session, body: initialize });
		expect(again.status).toBe(400);
		const stranger = await answer(host, {
			token: await host.mint({ sub: "mallory" }),
			session,
			body: initialize,
		});
		expect(stranger.status).toBe(404);
		for (const { headers } of [again, stranger])
			expect(headers.get("mcp-session-id") ?? session).toBe(session);
		expect(await client.call("fetch", { id: "a" }).ending).toMatchObject({ text: "the text of document a" });
	});

	test("does not bring back a session that has ended, nor take an id that the client has made up", async () => {
		const host = await startHost();
		const token = await host.mint();
		const session = await openSession(host, token);
		expect(await answer(host, { method: "DELETE", token, session })).toMatchObject({ status: 204 });
		for (const id of [session, "made-up"]) {
			expect(await answer(host, { token, session: id, body: initialize })).toMatchObject({ status: 404 });
		}
	});

	test("is alone in its POST", async () => {
		const host = await startHost();
		const body = [initialize, toolCall(1, "fetch", { id: "a" })];
		const reply = await answer(host, { token: await host.mint(), body });
		expect(reply.status).toBe(400);
		expect(reply.headers.has("mcp-session-id")).toBe(false);
		expect(host.emitted).toEqual([]);
	});
});

test("without a session id there is no GET, no DELETE and no call", async () => {
	const host = await startHost();
	const token = await host.mint();
	expect(await answer(host, { method: "GET", token })).toMatchObject({ status: 400 });
	expect(await answer(host, { method: "DELETE", token })).toMatchObject({ status: 400 });
	expect(await answer(host, { token, body: toolCall(1, "fetch", { id: "a" }) })).toMatchObject({
		status: 400,
	});
	expect(refusals(host)).toEqual(Array(3).fill("session session_required"));
	expect(host.emitted).toEqual([]);
});

describe("a body that is no JSON-RPC", () => {
	test.each([
		["", "nothing"],
		["{", "broken JSON"],
		["null", "null"],
		["42", "a number"],
		['"tools/call"', "a string"],
		["{}", "an empty object"],
		["[]", "an empty batch"],
		["[[]]", "a batch in a batch"],
		['{"id":1,"method":"ping"}', "no version"],
		['{"jsonrpc":"1.0","id":1,"method":"ping"}', "another version"],
		['{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', "an id that is none"],
		['{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"fetch"}}', "an id of null"],
		[
			'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["fetch"]}}',
			"a tool name that is none",
		],
		['{"jsonrpc":"2.0","id":1,"method":"tools/call"}', "a call without a tool"],
		['{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', "a request and a response"],
		['{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}', "a result and an error"],
		['[{"jsonrpc":"2.0","id":1,"method":"ping"},null]', "a batch with something else"],
	])("is answered 400: %s (%s)", async (body) => {
		const host = await startHost();
		const token = await host.mint();
		const session = await openSession(host, token);
		const before = host.emitted.length;
		const headers = { "content-type": "application/json" };
		const reply = await answer(host, { token, session, body, headers });
		expect(reply.status).toBe(400);
		expect(host.emitted).toHaveLength(before);
		expect(
			await answer(host, { token, session, body: { jsonrpc: "2.0", id: 9, method: "ping" } }),
		).toMatchObject({
			status: 200,
		});
	});
});
