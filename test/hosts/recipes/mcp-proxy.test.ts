import { Client } from "@modelcontextprotocol/client";
import { InMemoryTransport, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Gates } from "../../../examples/fastify/gates.ts";
import { createProxyHost } from "../../../examples/mcp-proxy/host.ts";
import { listen, silent, stop } from "../support/listen.ts";
import { recipeSuite } from "./suite.ts";

function createUpstream(gates: Gates): McpServer {
	const server = new McpServer({ name: "upstream", version: "1.0.0" });
	server.registerTool("search", {}, () => ({ content: [{ type: "text", text: "found" }] }));
	server.registerTool("fetch", { inputSchema: z.object({ id: z.string() }) }, async ({ id }, { mcpReq }) => {
		const progressToken = mcpReq._meta?.progressToken ?? "";
		await mcpReq.notify({
			method: "notifications/progress",
			params: { progressToken, progress: 1, message: "begun" },
		});
		await gates.pass("", "turn");
		return { content: [{ type: "text", text: `the text of document ${id}` }] };
	});
	server.registerTool("announce", {}, () => {
		server.sendToolListChanged();
		return { content: [{ type: "text", text: "announced" }] };
	});
	return server;
}

recipeSuite("mcp-proxy", async (options, gates) => {
	const { listener, guard } = await createProxyHost({ ...options, logger: silent }, async () => {
		const [near, far] = InMemoryTransport.createLinkedPair();
		await createUpstream(gates).connect(far);
		const client = new Client({ name: "proxy", version: "1.0.0" });
		await client.connect(near);
		return client;
	});
	const { origin, server } = await listen(listener);
	return {
		origin,
		async close() {
			await guard.close();
			await stop(server);
		},
	};
});
