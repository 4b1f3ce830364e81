import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { serve } from "@hono/node-server";
import { InMemorySessionAdapter, McpServer, StreamableHttpTransport } from "mcp-lite";
import { beforeEach, expect, test, vi } from "vitest";
import { createGates, type Gates } from "../../../examples/fastify/gates.ts";
import { createLiteHost } from "../../../examples/mcp-lite/host.ts";
import { call, headersOf, initialize } from "../support/client.ts";
import { originOf, silent, stop } from "../support/listen.ts";
import { recipeSuite } from "./suite.ts";

beforeEach(() => {
	// node-server has a line for each stream that is cut.
	vi.spyOn(console, "info").mockReturnValue();
});

function createServer(gates: Gates): McpServer {
	const server = new McpServer({ name: "lite", version: "1.0.0" });
	server.tool("search", { handler: () => ({ content: [{ type: "text", text: "found" }] }) });
	server.tool("fetch", {
		handler: async ({ id }: { id: string }, context) => {
			await context.progress?.({ progress: 1, message: "begun" });
			await gates.pass("", "turn");
			return { content: [{ type: "text", text: `the text of document ${id}` }] };
		},
	});
	server.tool("announce", {
		handler: () => {
			server.tool(randomUUID(), { handler: () => ({ content: [] }) });
			return { content: [{ type: "text", text: "announced" }] };
		},
	});
	return server;
}

recipeSuite(
	"mcp-lite",
	async (options, gates) => {
		const { app, guard } = await createLiteHost({ ...options, logger: silent }, () => createServer(gates));
		const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
		await once(server, "listening");
		return {
			origin: originOf(server),
			async close() {
				await guard.close();
				await stop(server);
			},
		};
	},
	{ version: "2025-06-18" },
);

test("mcp-lite without the guard keeps notifications, and no result", async () => {
	const gates = createGates();
	const sessionAdapter = new InMemorySessionAdapter({ maxEventBufferSize: 100 });
	const handle = new StreamableHttpTransport({ sessionAdapter }).bind(createServer(gates));
	const ask = (message: object, session?: string) =>
		handle(
			new Request("http://lite/mcp", {
				method: "POST",
				headers: headersOf(undefined, session, "2025-06-18"),
				body: JSON.stringify(message),
			}),
		);
	const session = (await ask(initialize("2025-06-18"))).headers.get("mcp-session-id") ?? "";
	const reader = (await ask(call(7, "fetch", { id: "owl" }), session)).body?.getReader();
	await reader?.read();
	await reader?.cancel();
	gates.open("", "turn");
	await (await ask(call(8, "search"), session)).text();

	const kept = sessionAdapter.get(session)?.streams.get("_GET_stream")?.eventBuffer;

	expect(kept).toMatchObject([{ message: { method: "notifications/progress" } }]);
});
