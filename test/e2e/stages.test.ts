import { expect, test } from "vitest";
import { BOTH, FETCH, type Host, numbersOf, refusals, SEARCH, startHost } from "./support/host.ts";
import { ask, callAndDrop, idsOf, messagesOf, openSession, toolCall } from "./support/raw.ts";

async function dropFetch(host: Host) {
	const token = await host.mint();
	const session = await openSession(host, token);
	const cursor = await callAndDrop(host, {
		token,
		session,
		id: 7,
		tool: "fetch",
		args: { id: "a", gate: "text" },
	});
	await host.open(session, "text");
	await host.stored(({ tool }) => tool === "fetch");
	return { token, session, cursor };
}

test("a resume that is not covered is refused with a challenge first, then with an error for each waiting call", async () => {
	const host = await startHost();
	const { session, cursor } = await dropFetch(host);
	const resume = async (aud: string | string[]) =>
		(await ask(host, { method: "GET", token: await host.mint({ aud }), session, cursor })).ended();

	const first = await resume(SEARCH);
	expect(first.status).toBe(403);
	expect(first.headers.get("www-authenticate")).toBe(
		`Bearer error="insufficient_scope", resource_metadata="${host.origin}/.well-known/oauth-protected-resource/mcp"`,
	);
	const decision = {
		outcome: "reauthorize",
		code: "audience_not_covered",
		cursor,
		deliver: 0,
		held: { tool: "fetch", request_id: 7, missing: { aud: [FETCH], scope: [] } },
		required: { aud: [FETCH], scope: [] },
		session: "keep",
	};
	expect(JSON.parse(first.text)).toMatchObject({
		jsonrpc: "2.0",
		id: null,
		error: { code: -32043, data: decision },
	});

	// Another token of the same rights does not start over.
	const second = await resume(SEARCH);
	expect(second.status).toBe(200);
	expect(second.headers.get("content-type")).toBe("text/event-stream");
	expect(second.end).toBe("clean");
	expect(second.text).not.toMatch(/^id:/m);
	const [error, message] = second.frames;
	expect(error?.event).toBe("error");
	expect(JSON.parse(error?.data ?? "")).toMatchObject(decision);
	expect(JSON.parse(message?.data ?? "")).toMatchObject({ id: 7, error: { code: -32043, data: decision } });
	expect(second.frames).toHaveLength(2);

	// Other rights do.
	expect(await resume("https://mcp.example.com/tools/slow")).toMatchObject({ status: 403 });
	expect(await resume(SEARCH)).toMatchObject({ status: 403 });

	const wide = await resume(decision.required.aud);
	expect(wide).toMatchObject({ status: 200, end: "clean" });
	expect(wide.text.startsWith(`id: ${cursor}\ndata: \n\n`)).toBe(true);
	expect(numbersOf(idsOf(wide))).toEqual([2]);
	expect(messagesOf(wide)).toMatchObject([{ id: 7, result: {} }]);
	expect(refusals(host)).toEqual(Array(4).fill("resume audience_not_covered"));
});

test("a client of an earlier revision is sent no event without data", async () => {
	const host = await startHost();
	const { token, session, cursor } = await dropFetch(host);
	const headers = { "mcp-protocol-version": "2025-06-18" };
	const reply = await (await ask(host, { method: "GET", token, session, cursor, headers })).ended();
	expect(numbersOf(idsOf(reply))).toEqual([2]);
	expect(reply.frames.every(({ data }) => data !== "")).toBe(true);
});

test("a prefix ends with what is missing, and the next resume is refused from there", async () => {
	const host = await startHost({ data: { replay: "prefix" } });
	const token = await host.mint();
	const session = await openSession(host, token);
	const body = [
		toolCall(7, "search", { query: "x", pages: 2, gate: "rest" }),
		toolCall(8, "fetch", { id: "a", gate: "text" }),
	];
	const post = await ask(host, { token, session, body });
	await post.until(({ frames }) => frames.length === 1);
	await host.drop(session);
	const [primed] = post.frames;
	const cursor = primed?.id ?? "";
	await host.open(session, "rest");
	await host.stored(({ id, tool }) => tool === "search" && id.endsWith(".4"));
	await host.open(session, "text");
	await host.stored(({ tool }) => tool === "fetch");

	const narrow = await host.mint({ aud: SEARCH });
	const prefix = await (await ask(host, { method: "GET", token: narrow, session, cursor })).ended();
	expect(prefix).toMatchObject({ status: 200, end: "clean" });
	expect(numbersOf(idsOf(prefix))).toEqual([2, 3, 4]);
	expect(prefix.text).toMatch(/^retry: \d+$/m);
	const told = prefix.frames.find(({ event }) => event === "error");
	expect(told?.id).toBeUndefined();
	const [, , last] = idsOf(prefix);
	expect(JSON.parse(told?.data ?? "")).toMatchObject({ outcome: "reauthorize", deliver: 3, cursor: last });

	const next = await (await ask(host, { method: "GET", token: narrow, session, cursor: last ?? "" })).ended();
	expect(next.status).toBe(403);
	expect(JSON.parse(next.text).error.data).toMatchObject({
		deliver: 0,
		cursor: last,
		required: { aud: [FETCH] },
	});
});

test("a call that needs a scope is refused with a challenge that names it, and goes on with a token that has it", async () => {
	const tools = { fetch: { aud: [FETCH], scope: ["docs:read"] } };
	const host = await startHost({ data: { tools } });
	const token = await host.mint();
	const session = await openSession(host, token);
	const body = toolCall(1, "fetch", { id: "a" });

	const refused = await (await ask(host, { token, session, body })).ended();
	expect(refused.status).toBe(403);
	expect(refused.headers.get("www-authenticate")).toBe(
		'Bearer error="insufficient_scope", scope="docs:read", ' +
			`resource_metadata="${host.origin}/.well-known/oauth-protected-resource/mcp"`,
	);
	const { data } = JSON.parse(refused.text).error;
	expect(data).toMatchObject({
		code: "scope_not_covered",
		held: { missing: { aud: [], scope: ["docs:read"] } },
	});

	const stepped = await host.mint({ aud: data.required.aud, scope: data.required.scope });
	const reply = await (await ask(host, { token: stepped, session, body })).ended();
	expect(messagesOf(reply)).toMatchObject([{ id: 1, result: {} }]);
	expect(data.required.aud).not.toContain(BOTH);
});
