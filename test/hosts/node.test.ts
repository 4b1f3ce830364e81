import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { createNodeGuard } from "mcp-resume-guard/node";
import { hostSuite } from "./suite.ts";
import type { StartHost } from "./support/host.ts";
import { listen, silent, stop } from "./support/listen.ts";

const start: StartHost = async (options, createServer) => {
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
	const { origin, server } = await listen(listener);
	return {
		origin,
		endSessions: guard.endSessions,
		async close() {
			await guard.close();
			await stop(server);
		},
	};
};

hostSuite("node:http", start);
