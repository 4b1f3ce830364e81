import { once } from "node:events";
import { serve } from "@hono/node-server";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { createFetchGuard, type FetchGuard } from "mcp-resume-guard/fetch";
import { beforeEach, describe, vi } from "vitest";
import { createHonoHost } from "../../examples/hono/host.ts";
import { connectTests, type StartConnected } from "./suite/connect.ts";
import { hostSuite } from "./suite.ts";
import type { Host, StartHost } from "./support/host.ts";
import { originOf, silent, stop } from "./support/listen.ts";

const startConnected: StartConnected = async (options, connect) => {
	const { app, guard } = await createHonoHost({ ...options, connect, logger: silent });
	return serveHono(app, guard);
};

const start: StartHost = (options, createServer) =>
	startConnected(options, (transport) => createServer().connect(transport));

const startOnSdk: StartHost = async (options, createServer) => {
	const guard = await createFetchGuard({ ...options, logger: silent });
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
	return serveHono(app, guard);
};

async function serveHono(app: Hono, guard: FetchGuard): Promise<Host> {
	const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
	await once(server, "listening");
	return {
		origin: originOf(server),
		endSessions: guard.endSessions,
		async close() {
			await guard.close();
			await stop(server);
		},
	};
}

beforeEach(() => {
	// node-server has a line for each stream that is cut, Hono for each error.
	vi.spyOn(console, "info").mockReturnValue();
	vi.spyOn(console, "error").mockReturnValue();
});

hostSuite("Hono", start);
describe("Hono: connected servers", () => connectTests(startConnected));
hostSuite("Hono, a transport of the SDK", startOnSdk);
