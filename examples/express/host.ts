import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import type { McpServer } from "@modelcontextprotocol/server";
import express, { type Express } from "express";
import { createNodeGuard, type NodeGuard, type NodeGuardOptions } from "mcp-resume-guard/node";

/** An MCP host on Express. Close `guard` before the server: streams stay open for as long as clients like. */
export async function createExpressHost(
	options: NodeGuardOptions,
	createServer: () => McpServer,
): Promise<{ app: Express; guard: NodeGuard }> {
	const guard = await createNodeGuard(options);
	const app = express();
	app.use(
		guard.listener(async (request, response, { session, body }) => {
			if (session === undefined) return void response.writeHead(400).end();
			let { transport } = session;
			if (transport === undefined) {
				const created = session.attach(new NodeStreamableHTTPServerTransport(session.transportOptions));
				await createServer().connect(created);
				transport = created;
			}
			await transport.handleRequest(request, response, body);
		}),
	);
	return { app, guard };
}
