import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Gates } from "../../../examples/fastify/gates.ts";
import { createTools } from "../../../examples/fastify/tools.ts";

const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] });

/** The tools of the example (`search`, `fetch`), and some that need nothing. */
export function createTestServer(gates: Gates): McpServer {
	const server = createTools(gates);

	server.registerTool("whoami", { description: "Says what it knows of the caller." }, (context) => {
		const { token: _, ...authInfo } = context.http?.authInfo ?? {};
		return text(JSON.stringify(authInfo));
	});

	server.registerTool("announce", { description: "Tells the session, and nobody's call." }, async () => {
		await server.server.notification({ method: "notifications/tools/list_changed" });
		return text("announced");
	});

	server.registerTool("confirm", { description: "Asks first." }, async ({ mcpReq }) => {
		const { action } = await mcpReq.elicitInput(
			{ message: "Sure?", requestedSchema: { type: "object", properties: {} } },
			{ relatedRequestId: mcpReq.id },
		);
		return text(`the answer was ${action}`);
	});

	server.registerTool(
		"bulk",
		{
			description: "Reports much.",
			inputSchema: z.object({ count: z.number(), size: z.number() }),
		},
		async ({ count, size }, { mcpReq }) => {
			const progressToken = mcpReq._meta?.progressToken ?? "";
			for (let progress = 1; progress <= count; progress++) {
				const message = `${progress} `.padEnd(size, "x");
				await mcpReq.notify({
					method: "notifications/progress",
					params: { progressToken, progress, total: count, message },
				});
			}
			return text(`${count} done`);
		},
	);

	return server;
}
