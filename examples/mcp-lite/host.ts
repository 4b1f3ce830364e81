import { Hono } from "hono";
import { InMemorySessionAdapter, type McpServer, StreamableHttpTransport } from "mcp-lite";
import { createFetchGuard, type FetchGuard, type FetchGuardOptions } from "mcp-resume-guard/fetch";
import { createTap, type Inner } from "./tap.ts";

/** An MCP host with servers of mcp-lite. Close `guard` before the server: streams stay open for as long as clients like. */
export async function createLiteHost(
	options: FetchGuardOptions,
	createServer: () => McpServer,
): Promise<{ app: Hono; guard: FetchGuard }> {
	const guard = await createFetchGuard(options);
	const app = new Hono();
	app.use(async (context, next) => {
		const response = await guard.handle(context.req.raw, async (request, { session, body, authInfo }) => {
			if (session === undefined) return new Response(null, { status: 400 });
			const transport = session.transport ?? session.attach(createTap(session, createLite(createServer())));
			return transport.handleRequest(request, { parsedBody: body, authInfo });
		});
		return response ?? next();
	});
	return { app, guard };
}

// The adapter has the session; its events are the guard's.
function createLite(server: McpServer): Inner {
	const sessionAdapter = new InMemorySessionAdapter({ maxEventBufferSize: 1 });
	const handle = new StreamableHttpTransport({ sessionAdapter }).bind(server);
	return (request, authInfo) => handle(request, authInfo === undefined ? {} : { authInfo });
}
