import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import Fastify from "fastify";
import { Sessions, streamableHttp } from "fastify-mcp";
import { resumeGuard } from "mcp-resume-guard/fastify";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Gates } from "../../../examples/fastify/gates.ts";
import { createFastifyMcpHost } from "../../../examples/fastify-mcp/host.ts";
import { data, tokens } from "../support/host.ts";
import { originOf } from "../support/listen.ts";
import { recipeSuite } from "./suite.ts";

function createServer(gates: Gates) {
	const mcp = new McpServer({ name: "fastify-mcp", version: "1.0.0" });
	mcp.registerTool("search", {}, () => ({ content: [{ type: "text", text: "found" }] }));
	mcp.registerTool(
		"fetch",
		{ inputSchema: { id: z.string() } },
		async ({ id }, { _meta, sendNotification }) => {
			const progressToken = _meta?.progressToken ?? "";
			await sendNotification({
				method: "notifications/progress",
				params: { progressToken, progress: 1, message: "begun" },
			});
			await gates.pass("", "turn");
			return { content: [{ type: "text", text: `the text of document ${id}` }] };
		},
	);
	mcp.registerTool("announce", {}, () => {
		mcp.sendToolListChanged();
		return { content: [{ type: "text", text: "announced" }] };
	});
	return mcp.server;
}

recipeSuite("fastify-mcp", async (options, gates) => {
	const app = await createFastifyMcpHost(options, () => createServer(gates));
	await app.listen({ host: "127.0.0.1", port: 0 });
	return { origin: originOf(app.server), close: () => app.close() };
});

test("its plugin and the guard's are not for one instance", async () => {
	const app = Fastify();
	await app.register(resumeGuard, { data, tokens });

	const both = app.register(streamableHttp, {
		stateful: true,
		mcpEndpoint: "/mcp",
		sessions: new Sessions<StreamableHTTPServerTransport>(),
		createServer: () => {
			throw new Error("not reached");
		},
	});

	await expect(both).rejects.toMatchObject({ code: "FST_ERR_DUPLICATED_ROUTE" });
});
