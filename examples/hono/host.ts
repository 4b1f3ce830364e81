import { type McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { createFetchGuard, type FetchGuard, type FetchGuardOptions } from "mcp-resume-guard/fetch";

/** An MCP host on Hono. Close `guard` before the server: streams stay open for as long as clients like. */
export async function createHonoHost(
	options: FetchGuardOptions,
	createServer: () => McpServer,
): Promise<{ app: Hono; guard: FetchGuard }> {
	const guard = await createFetchGuard(options);
	const app = new Hono();
	app.use(async (context, next) => {
		const response = await guard.handle(context.req.raw, async (request, { session, body, authInfo }) => {
			if (session === undefined) return new Response(null, { status: 400 });
			let { transport } = session;
			if (transport === undefined) {
				const created = session.attach(
					new WebStandardStreamableHTTPServerTransport(session.transportOptions),
				);
				await createServer().connect(created);
				transport = created;
			}
			return transport.handleRequest(request, { parsedBody: body, authInfo });
		});
		return response ?? next();
	});
	return { app, guard };
}
