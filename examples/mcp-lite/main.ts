import { serve } from "@hono/node-server";
import { McpServer } from "mcp-lite";
import { runRecipe } from "../recipe.ts";
import { createLiteHost } from "./host.ts";

function createServer(): McpServer {
	const server = new McpServer({ name: "example", version: "1.0.0" });
	server.tool("search", {
		description: "Finds documents.",
		handler: () => ({ content: [{ type: "text", text: "found" }] }),
	});
	return server;
}

// npx tsx examples/mcp-lite/main.ts
await runRecipe(async ({ port, ...options }) => {
	const { app } = await createLiteHost(options, createServer);
	serve({ fetch: app.fetch, hostname: "127.0.0.1", port });
});
