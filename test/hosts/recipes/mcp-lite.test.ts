import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { serve } from "@hono/node-server";
import { McpServer } from "mcp-lite";
import { beforeEach, vi } from "vitest";
import { createLiteHost } from "../../../examples/mcp-lite/host.ts";
import { originOf, silent, stop } from "../support/listen.ts";
import { recipeSuite } from "./suite.ts";

beforeEach(() => {
	// node-server has a line for each stream that is cut.
	vi.spyOn(console, "info").mockReturnValue();
});

recipeSuite(
	"mcp-lite",
	async (options, gates) => {
		const { app, guard } = await createLiteHost({ ...options, logger: silent }, () => {
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
		});
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
