import type { Client } from "@modelcontextprotocol/client";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { Server } from "@modelcontextprotocol/server";
import { proxyServer } from "mcp-proxy";
import {
	createNodeGuard,
	type NodeGuard,
	type NodeGuardOptions,
	type NodeListener,
} from "mcp-resume-guard/node";

/**
 * An MCP host on node:http that hands on what another server has: mcp-proxy proxies, and the guard serves in place of
 * its `startHTTPServer`. Each session has an upstream connection of its own, so that the state of one is not another's.
 */
export async function createProxyHost(
	options: NodeGuardOptions,
	connectUpstream: () => Promise<Client>,
): Promise<{ listener: NodeListener; guard: NodeGuard }> {
	const guard = await createNodeGuard(options);

	async function createServer(): Promise<Server> {
		const client = await connectUpstream();
		const serverCapabilities = client.getServerCapabilities() ?? {};
		const info = client.getServerVersion() ?? { name: "proxy", version: "1.0.0" };
		const server = new Server(info, { capabilities: serverCapabilities });
		server.onclose = () => void client.close();
		await proxyServer({ client, server, serverCapabilities });
		return server;
	}

	const listener = guard.listener(async (request, response, { session, body }) => {
		if (session === undefined) return void response.writeHead(400).end();
		let { transport } = session;
		if (transport === undefined) {
			const created = session.attach(new NodeStreamableHTTPServerTransport(session.transportOptions));
			const server = await createServer();
			await server.connect(created);
			transport = created;
		}
		await transport.handleRequest(request, response, body);
	});
	return { listener, guard };
}
