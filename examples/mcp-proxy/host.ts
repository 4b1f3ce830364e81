import type { Client } from "@modelcontextprotocol/client";
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
	async function createServer(): Promise<Server> {
		const client = await connectUpstream();
		const serverCapabilities = client.getServerCapabilities() ?? {};
		const info = client.getServerVersion() ?? { name: "proxy", version: "1.0.0" };
		const server = new Server(info, { capabilities: serverCapabilities });
		server.onclose = () => void client.close();
		await proxyServer({ client, server, serverCapabilities });
		return server;
	}

	const guard = await createNodeGuard({
		...options,
		async connect(transport) {
			const server = await createServer();
			await server.connect(transport);
		},
	});
	return { listener: guard.listener(), guard };
}
