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

	server.registerTool("whence", { description: "Says what it knows of the request." }, ({ http }) => {
		const { method, url, headers } = http?.req ?? {};
		return text([method, url, headers?.get("x-trace")].join(" "));
	});

	server.registerTool(
		"poll",
		{
			description: "Lets a stream of the client's go.",
			inputSchema: z.object({ closer: z.enum(["closeSSE", "closeStandaloneSSE"]), gate: z.string() }),
		},
		async ({ closer, gate }, { sessionId = "", http }) => {
			const close = http?.[closer];
			if (close === undefined) return text(`no ${closer}`);
			close();
			await gates.pass(sessionId, gate);
			return text("polled");
		},
	);

	server.registerTool("straggle", { description: "Has something late of request 1." }, async () => {
		const params = { progressToken: "of 1", progress: 9, message: "late" };
		await server.server.notification({ method: "notifications/progress", params }, { relatedRequestId: 1 });
		return text("sent");
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
