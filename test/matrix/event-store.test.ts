import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createNodeGuard, type NodeGuard } from "mcp-resume-guard/node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RequestId } from "../../src/generated/types.ts";
import type { SdkEventStore } from "../../src/hosts/sdk.ts";
import { createLogger } from "./host.ts";
import { type Appended, createOverheardLog } from "./overheard.ts";
import { type Body, openRaw, type RawSession, toolCall } from "./raw.ts";
import { data, ISSUER, jwks, mint } from "./tokens.ts";

const SEARCH = { tool: "search", aud: ["https://mcp.example.com/tools/search"], scope: [] };
const FETCH = { tool: "fetch", aud: ["https://mcp.example.com/tools/fetch"], scope: [] };
const BOTH = { aud: [...FETCH.aud, ...SEARCH.aud], scope: [] };

// Whoever has the event store only, without the transport, says of no message which call it is for.
describe("a session's event store without its transport", () => {
	let guard: NodeGuard;
	let server: Server;
	let session: RawSession;
	let store: SdkEventStore;
	let appended: readonly Appended[];
	let inContext: (<T>(run: () => T) => T)[];

	beforeEach(async () => {
		const log = createOverheardLog();
		appended = log.appended;
		inContext = [];
		guard = await createNodeGuard({
			data,
			tokens: { issuer: ISSUER, jwks },
			events: log.events,
			logger: createLogger(),
		});
		server = createServer(
			guard.listener((_request, response, { session, body }) => {
				if (session === undefined) throw new Error("every request has a session");
				store = session.transportOptions.eventStore;
				const { method } = body as { method?: string };
				if (method === "initialize") response.setHeader("mcp-session-id", session.id);
				if (method?.startsWith("notifications/")) response.statusCode = 202;
				if (method === "initialize" || response.statusCode === 202) return void response.end();
				inContext.push(AsyncLocalStorage.snapshot());
				response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
			}),
		);
		server.listen(0, "127.0.0.1");
		await once(server, "listening");
		session = await openRaw((server.address() as AddressInfo).port, await mint("wide"));
	});

	afterEach(async () => {
		await guard.close();
		server.close();
		server.closeAllConnections();
	});

	/** POSTs; resolves with how to run something in its asynchronous context. */
	async function post(body: Body): Promise<<T>(run: () => T) => T> {
		await session.post(body);
		return inContext.at(-1) ?? expect.unreachable();
	}

	const note = (text: string) => ({
		jsonrpc: "2.0",
		method: "notifications/message",
		params: { data: text },
	});
	const result = (id: RequestId) => ({ jsonrpc: "2.0", id, result: {} });
	const last = () => appended.at(-1);

	test("takes what is on the stream of a call to be of the call, once its context or its result has said so", async () => {
		const inA = await post(toolCall(1, "search", "a"));
		await post(toolCall(2, "fetch", "b"));
		await inA(() => store.storeEvent("one", {}));
		await store.storeEvent("one", note("a"));
		expect(last()).toMatchObject({ label: SEARCH, request_id: 1 });
		await store.storeEvent("two", result(2));
		expect(last()).toMatchObject({ label: FETCH, request_id: 2, terminal: true });
	});

	test("does not believe a context that contradicts what is known", async () => {
		const inA = await post(toolCall(1, "search", "a"));
		const inB = await post(toolCall(2, "fetch", "b"));
		await inA(() => store.storeEvent("one", {}));
		await inB(() => store.storeEvent("two", {}));
		await inA(() => store.storeEvent("two", note("b")));
		expect(last()).toMatchObject({ label: FETCH, request_id: 2 });
		const inC = await post(toolCall(3, "fetch", "c"));
		await post(toolCall(4, "search", "d"));
		await inC(() => store.storeEvent("four", result(4)));
		expect(last()).toMatchObject({ label: SEARCH, request_id: 4 });
	});

	test("takes what is for one of several calls in a POST to be for all of them, but for results", async () => {
		const inBatch = await post([toolCall(1, "search", "a"), toolCall(2, "fetch", "b")]);
		await inBatch(() => store.storeEvent("one", note("a or b")));
		expect(last()).toMatchObject({ label: BOTH });
		expect(last()).not.toHaveProperty("request_id");
		await store.storeEvent("one", result(1));
		expect(last()).toMatchObject({ label: SEARCH, request_id: 1, terminal: true });
		await store.storeEvent("one", note("b"));
		expect(last()).toMatchObject({ label: BOTH });
	});

	test("takes what is of no POST to need what all calls of the session so far have needed", async () => {
		await post(toolCall(1, "search", "a"));
		await store.storeEvent("lost", note("1"));
		expect(last()?.label).toEqual({ aud: SEARCH.aud, scope: [] });
		const inB = await post(toolCall(2, "fetch", "b"));
		await store.storeEvent("lost", note("2"));
		expect(last()?.label).toEqual(BOTH);
		// A POST has one stream.
		await inB(() => store.storeEvent("two", {}));
		await inB(() => store.storeEvent("two again", note("3")));
		expect(last()?.label).toEqual(BOTH);
		expect(new Set(appended.map(({ stream }) => stream)).size).toBe(2);
	});

	test("does not replay", async () => {
		await expect(store.replayEventsAfter("1", { send: async () => undefined })).rejects.toThrow(
			"resumes are served by mcp-resume-guard",
		);
	});
});
