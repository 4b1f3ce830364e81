import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { runRecipe } from "../recipe.ts";
import { createFastifyMcpHost } from "./host.ts";

function createServer() {
	const mcp = new McpServer({ name: "example", version: "1.0.0" });
	mcp.registerTool("search", { description: "Finds documents." }, () => ({
		content: [{ type: "text", text: "found" }],
	}));
	return mcp.server;
}

// npx tsx examples/fastify-mcp/main.ts
await runRecipe(async ({ port, ...options }) => {
	const app = await createFastifyMcpHost(options, createServer);
	await app.listen({ host: "127.0.0.1", port });
});
