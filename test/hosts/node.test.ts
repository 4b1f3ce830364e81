import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { createNodeGuard, type NodeGuard, type NodeListener } from "mcp-resume-guard/node";
import { describe } from "vitest";
import { connectTests, type StartConnected } from "./suite/connect.ts";
import { hostSuite } from "./suite.ts";
import type { Host, StartHost } from "./support/host.ts";
import { listen, silent, stop } from "./support/listen.ts";

const startConnected: StartConnected = async (options, connect) => {
	const guard = await createNodeGuard({ ...options, connect, logger: silent });
	return serve(guard, guard.listener());
};

const start: StartHost = (options, createServer) =>
	startConnected(options, (transport) => createServer().connect(transport));

const startOnSdk: StartHost = async (options, createServer) => {
	const guard = await createNodeGuard({ ...options, logger: silent });
	const listener = guard.listener(async (request, response, { session, body }) => {
		if (session === undefined) return void response.writeHead(400).end();
		let { transport } = session;
		if (transport === undefined) {
			const created = session.attach(new NodeStreamableHTTPServerTransport(session.transportOptions));
			await createServer().connect(created);
			transport = created;
		}
		await transport.handleRequest(request, response, body);
	});
	return serve(guard, listener);
};

async function serve(guard: NodeGuard, listener: NodeListener): Promise<Host> {
	const { origin, server } = await listen(listener);
	return {
		origin,
		endSessions: guard.endSessions,
		async close() {
			await guard.close();
			await stop(server);
		},
	};
}

hostSuite("node:http", start);
describe("node:http: connected servers", () => connectTests(startConnected));
hostSuite("node:http, a transport of the SDK", startOnSdk);
