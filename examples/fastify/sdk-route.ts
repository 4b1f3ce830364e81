import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import type { McpServer } from "@modelcontextprotocol/server";
import type { FastifyInstance } from "fastify";

/** Behind a guard without `connect`: a route that hands what is let through to a transport of the MCP SDK. */
export function addSdkRoute(app: FastifyInstance, createServer: () => McpServer): void {
	app.post("/mcp", async (request, reply) => {
		const { session, body } = request.mcp ?? {};
		if (session === undefined) return reply.code(400).send();
		let { transport } = session;
		if (transport === undefined) {
			const created = session.attach(new NodeStreamableHTTPServerTransport(session.transportOptions));
			await createServer().connect(created);
			transport = created;
		}
		reply.hijack();
		await transport.handleRequest(request.raw, reply.raw, body);
	});
}
