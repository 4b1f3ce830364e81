import type { McpServer } from "@modelcontextprotocol/server";
import type { PolicyData } from "mcp-resume-guard";
import { z } from "zod";
import type { Gates } from "../../../examples/fastify/gates.ts";
import { createTools } from "../../../examples/fastify/tools.ts";

export const testTools: NonNullable<PolicyData["tools"]> = Object.fromEntries(
	["search", "fetch", "slow", "ask", "announce", "mutter"].map((name) => [
		name,
		{ aud: [`https://mcp.example.com/tools/${name}`], scope: [] },
	]),
);

/** The tools of the example, one that asks the user, and one that makes the server say something to the session. */
export function createTestServer(gates: Gates): McpServer {
	const server = createTools(gates);
	server.server.registerCapabilities({ logging: {} });

	server.registerTool(
		"ask",
		{ description: "Asks the user for a name.", inputSchema: z.object({}) },
		async (_args, { mcpReq }) => {
			// Not `mcpReq.elicitInput`, which asks on the session's own stream.
			const { action, content } = await mcpReq.send({
				method: "elicitation/create",
				params: {
					mode: "form",
					message: "Who are you?",
					requestedSchema: { type: "object", properties: { name: { type: "string" } } },
				},
			});
			return { content: [{ type: "text", text: `${action} ${JSON.stringify(content ?? {})}` }] };
		},
	);

	server.registerTool(
		"announce",
		{ description: "Tells the session something.", inputSchema: z.object({ times: z.number().default(1) }) },
		async ({ times }) => {
			for (let n = 0; n < times; n++) await server.server.sendToolListChanged();
			return { content: [{ type: "text", text: "told" }] };
		},
	);

	server.registerTool("mutter", { description: "Writes a line to the client's log." }, async () => {
		await server.server.notification({
			method: "notifications/message",
			params: { level: "info", data: "so and so" },
		});
		return { content: [{ type: "text", text: "muttered" }] };
	});

	return server;
}
