import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { FastMCPSession } from "fastmcp";
import type { Claims } from "mcp-resume-guard";
import {
	createNodeGuard,
	type NodeGuard,
	type NodeGuardOptions,
	type NodeListener,
} from "mcp-resume-guard/node";

/** `session` of a tool's context. */
export interface Auth extends Record<string, unknown> {
	/** Verified claims of the token that the tool was called with. */
	readonly claims: Claims | undefined;
}

/** The members of a FastMCP server: `name`, `version`, `tools` and so on. */
export type Definition = Omit<
	ConstructorParameters<typeof FastMCPSession<Auth>>[0],
	"auth" | "sessionId" | "stateless" | "transportType"
>;

/**
 * An MCP host on node:http with sessions of fastmcp: the guard serves in place of `FastMCP.start()`.
 */
export async function createFastMcpHost(
	options: NodeGuardOptions,
	definition: Definition,
): Promise<{ listener: NodeListener; guard: NodeGuard }> {
	const guard = await createNodeGuard(options);
	const servers = new WeakMap<object, FastMCPSession<Auth>>();
	const listener = guard.listener(async (request, response, { session, body, claims }) => {
		if (session === undefined) return void response.writeHead(400).end();
		let { transport } = session;
		if (transport === undefined) {
			const created = session.attach(new StreamableHTTPServerTransport(session.transportOptions));
			const server = new FastMCPSession<Auth>({
				ping: { enabled: false },
				...definition,
				transportType: "httpStream",
			});
			// Not awaited: it waits for the `initialize` that is at hand.
			server.connect(created).catch((error) => definition.logger.error("no session", error.message));
			servers.set(created, server);
			transport = created;
		}
		servers.get(transport)?.updateAuth({ claims });
		await transport.handleRequest(request, response, body);
	});
	return { listener, guard };
}
