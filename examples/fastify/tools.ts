import { setTimeout as sleep } from "node:timers/promises";
import { McpServer, type ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Gates } from "./gates.ts";

const gate = z.string().optional().describe("Example only: waits here until POST /dev/open names it.");

/** An MCP server with three tools, each of which needs a resource indicator of its own (see data.ts). */
export function createTools(gates: Gates): McpServer {
	const wait = async ({ sessionId = "" }: ServerContext, name: string | undefined) => {
		if (name !== undefined) await gates.pass(sessionId, name);
	};
	const server = new McpServer({ name: "example", version: "1.0.0" });

	server.registerTool(
		"search",
		{
			description: "Finds documents; reports progress.",
			inputSchema: z.object({
				query: z.string(),
				pages: z.number().int().min(0).max(1000).default(5),
				gate,
				gate_after: z
					.number()
					.int()
					.min(0)
					.default(0)
					.describe("Example only: the page after which the gate is."),
			}),
		},
		async ({ query, pages, gate, gate_after }, context) => {
			for (let page = 0; page <= pages; page++) {
				if (page > 0) await progress(context, page, pages, `page ${page}`);
				if (page === gate_after) await wait(context, gate);
			}
			return text(`${pages} pages about ${query}`);
		},
	);

	server.registerTool(
		"fetch",
		{ description: "Fetches a document.", inputSchema: z.object({ id: z.string(), gate }) },
		async ({ id, gate }, context) => {
			await wait(context, gate);
			return text(`the text of document ${id}`);
		},
	);

	server.registerTool(
		"slow",
		{
			description: "Takes its time; reports progress.",
			inputSchema: z.object({
				steps: z.number().int().min(1).max(1000).default(10),
				milliseconds: z.number().int().min(0).max(60_000).default(200),
			}),
		},
		async ({ steps, milliseconds }, context) => {
			for (let step = 1; step <= steps; step++) {
				await sleep(milliseconds);
				await progress(context, step, steps, `step ${step}`);
			}
			return text(`${steps} steps done`);
		},
	);

	return server;
}

async function progress(
	{ mcpReq }: ServerContext,
	done: number,
	total: number,
	message: string,
): Promise<void> {
	const progressToken = mcpReq._meta?.progressToken;
	if (progressToken === undefined) return;
	await mcpReq.notify({
		method: "notifications/progress",
		params: { progressToken, progress: done, total, message },
	});
}

function text(value: string) {
	return { content: [{ type: "text" as const, text: value }] };
}
