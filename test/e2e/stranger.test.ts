import { describe, expect, test } from "vitest";
import { connect, dropAndReturn, versions } from "./support/client.ts";
import { expectAllOnce, expectNothingOf } from "./support/expect.ts";
import { BOTH, type Host, refusals, SEARCH, startHost } from "./support/host.ts";
import { ask, callAndDrop, idsOf, messagesOf, openSession, type Reply, toolCall } from "./support/raw.ts";

const args = { id: "a", gate: "text" };

/** Every kind of request that names a session. */
const requests = ["GET", "GET with a cursor", "POST", "DELETE"] as const;

async function send(
	host: Host,
	kind: (typeof requests)[number],
	session: string,
	cursor: string,
	token: string,
) {
	const body = kind === "POST" ? { body: toolCall(2, "search", { query: "x" }) } : {};
	const resumed = kind === "GET with a cursor" ? { cursor } : {};
	const [method = ""] = kind.split(" ");
	return (await ask(host, { method, token, session, ...body, ...resumed })).ended();
}

async function openAndDrop(host: Host) {
	const token = await host.mint();
	const session = await openSession(host, token);
	const cursor = await callAndDrop(host, { token, session, tool: "fetch", args });
	return { token, session, cursor };
}

describe.each(requests)("a stranger's %s", (kind) => {
	test.each([
		["another subject", { sub: "mallory" }, ["sub"]],
		["another client of the same subject", { client_id: "phone" }, ["client_id"]],
	])("ends the session, and is told nothing: %s", async (_, claims, drift) => {
		const host = await startHost();
		const { token, session, cursor } = await openAndDrop(host);
		const reply = await send(host, kind, session, cursor, await host.mint(claims));

		expect(reply.status).toBe(403);
		expect(reply.headers.has("mcp-session-id")).toBe(false);
		expect(JSON.parse(reply.text)).toEqual({
			jsonrpc: "2.0",
			error: { code: -32043, message: "Forbidden" },
			id: null,
		});
		const logged = host.logged
			.map((line) => JSON.parse(line).mcp)
			.filter((mcp) => mcp?.code === "principal_drift");
		expect(logged).toMatchObject([{ drift, outcome: "reinitialize" }]);

		const owner = await send(host, "GET with a cursor", session, cursor, token);
		expect(owner.status).toBe(404);
		expect(owner.headers.has("mcp-session-id")).toBe(false);
	});

	test("is answered byte for byte like one with an unknown id, and the owner's session goes on", async () => {
		const host = await startHost({ data: { foreign_principal: "keep" } });
		const { token, session, cursor } = await openAndDrop(host);
		const mallory = await host.mint({ sub: "mallory" });
		const known = await send(host, kind, session, cursor, mallory);
		const unknown = await send(host, kind, crypto.randomUUID(), cursor, mallory);
		expect(wholeOf(known)).toEqual(wholeOf(unknown));
		expect(known.status).toBe(404);
		expect(refusals(host)).toEqual([
			expect.stringMatching(/ principal_drift$/),
			expect.stringMatching(/ session_unknown$/),
		]);

		await host.open(session, "text");
		const owner = await send(host, "GET with a cursor", session, cursor, token);
		expect(messagesOf(owner)).toMatchObject([{ id: 1, result: {} }]);
	});
});

function wholeOf({ status, headers, text }: Reply) {
	return { status, headers: [...headers].filter(([name]) => name !== "date"), text };
}

test("a session that is kept serves its owner while strangers try", async () => {
	const host = await startHost({ data: { foreign_principal: "keep" } });
	const client = await connect("v2", host);
	const mallory = await host.mint({ sub: "mallory" });
	const call = client.call("search", { query: "x", pages: 8, gate: "rest", gate_after: 3 });
	await client.has(call, 4);
	for (const kind of requests) await send(host, kind, client.session, call.cursor, mallory);
	await dropAndReturn(host, client, await host.mint());
	for (const kind of requests) await send(host, kind, client.session, call.cursor, mallory);
	await host.open(client.session, "rest");
	expect(await call.ending).toMatchObject({ text: "8 pages about x" });
	expectAllOnce(host, client, call.cursor);
});

describe.each(versions)("a client of SDK %s whose audience has been rotated", (version) => {
	test("is told 403 and then 404, is sent nothing, and goes on in a new session", async () => {
		const host = await startHost();
		const client = await connect(version, host, { token: await host.mint({ aud: "mcp://srv" }) });
		const call = client.call("fetch", args, { timeout: 2_000 });
		await client.has(call, 1);
		const rotated = await host.mint({ aud: "mcp://srv/v2" });
		await dropAndReturn(host, client, rotated, async () => {
			await host.open(client.session, "text");
			await host.stored(({ tool }) => tool === "fetch");
		});
		const refused = await client.recorder.exchange(({ status }) => status === 403);
		expect(refused.headers.has("mcp-session-id")).toBe(false);
		await client.recorder.exchange(({ status }) => status === 404);
		// Neither client ends the call for that; it is over when its own time is.
		expect((await call.ending).error?.message).toMatch(/timed out/i);
		expect(client.errors.map(({ message }) => message).join()).toMatch(/Forbidden.*Not Found/s);
		expectNothingOf("the text of document a", client, rotated);

		const again = await connect(version, host, { token: rotated });
		expect(again.session).not.toBe(client.session);
		expect(await again.call("fetch", { id: "a" }).ending).toMatchObject({ text: "the text of document a" });
	});
});

describe("a session whose audience has been rotated", () => {
	test("ends at the first use: 403 without a session id, then 404, and no event", async () => {
		const host = await startHost();
		const token = await host.mint({ aud: "mcp://srv" });
		const session = await openSession(host, token);
		const cursor = await callAndDrop(host, { token, session, tool: "fetch", args });
		await host.open(session, "text");
		const rotated = await host.mint({ aud: "mcp://srv/v2" });

		const refused = await send(host, "GET with a cursor", session, cursor, rotated);
		expect(refused.status).toBe(403);
		expect(refused.headers.has("mcp-session-id")).toBe(false);
		expect(refused.headers.has("www-authenticate")).toBe(false);
		expect(JSON.parse(refused.text).error.data).toMatchObject({
			outcome: "reinitialize",
			code: "binding_drift",
			drift: ["aud"],
			session: "end",
		});
		for (const kind of requests) {
			for (const used of [rotated, token]) {
				expect(await send(host, kind, session, cursor, used)).toMatchObject({ status: 404 });
			}
		}
		expect(await openSession(host, rotated)).not.toBe(session);
	});

	test("goes on where the operator has declared the two audiences aliases", async () => {
		const host = await startHost({ data: { aliases: [["mcp://srv", "mcp://srv/v2"]] } });
		const token = await host.mint({ aud: "mcp://srv" });
		const session = await openSession(host, token);
		const cursor = await callAndDrop(host, { token, session, tool: "fetch", args });
		await host.open(session, "text");
		const rotated = await host.mint({ aud: "mcp://srv/v2" });
		const reply = await send(host, "GET with a cursor", session, cursor, rotated);
		expect(messagesOf(reply)).toMatchObject([{ id: 1, result: {} }]);
	});
});

describe("an anonymous session", () => {
	const data = {
		anonymous: true,
		tools: { search: { aud: [], scope: [] }, fetch: { aud: [BOTH], scope: [] } },
	};
	const search = { query: "x", pages: 3, gate: "rest", gate_after: 1 };

	test("calls and resumes what needs nothing, and nothing else", async () => {
		const host = await startHost({ data });
		const session = await openSession(host);
		const post = await ask(host, { session, body: toolCall(1, "search", search) });
		await post.until(({ frames }) => frames.length === 2);
		await host.drop(session);
		await host.open(session, "rest");
		const reply = await (
			await ask(host, { method: "GET", session, cursor: idsOf(post).at(-1) ?? "" })
		).ended();
		expect(messagesOf(reply)).toHaveLength(3);

		const refused = await (await ask(host, { session, body: toolCall(2, "fetch", { id: "a" }) })).ended();
		expect(refused.status).toBeGreaterThanOrEqual(400);
		expect(host.emitted.some(({ tool }) => tool === "fetch")).toBe(false);
	});

	test.each(requests)("is not taken over by a token: %s", async (kind) => {
		const host = await startHost({ data });
		const session = await openSession(host);
		const reply = await send(host, kind, session, "x.y.1", await host.mint());
		expect(reply.status).toBe(403);
		expect(refusals(host)).toEqual([expect.stringMatching(/ principal_drift$/)]);
	});

	test.each(requests)("does not make a session with a token anonymous: %s", async (kind) => {
		const host = await startHost({ data });
		const token = await host.mint({ aud: [BOTH, SEARCH] });
		const session = await openSession(host, token);
		const [method = ""] = kind.split(" ");
		const body = method === "POST" ? { body: toolCall(1, "search", { query: "x" }) } : {};
		const reply = await (await ask(host, { method, session, ...body })).ended();
		expect(reply.status).toBe(401);
		expect(refusals(host)).toEqual([expect.stringMatching(/ token_missing$/)]);
		expect(
			await (await ask(host, { token, session, body: toolCall(1, "search", { query: "x" }) })).ended(),
		).toMatchObject({ status: 200 });
	});
});
