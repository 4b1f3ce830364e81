import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import Fastify from "fastify";
import { resumeGuard } from "mcp-resume-guard/fastify";
import { hostSuite } from "./suite.ts";
import type { StartHost } from "./support/host.ts";
import { originOf } from "./support/listen.ts";

const start: StartHost = async (options, createServer) => {
	const app = Fastify({ bodyLimit: 4 * 1024 * 1024 });
	await app.register(resumeGuard, options);
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
	await app.listen({ host: "127.0.0.1", port: 0 });
	return {
		origin: originOf(app.server),
		endSessions: (match) => app.resumeGuard.endSessions(match),
		close: () => app.close(),
	};
};

hostSuite("Fastify", start);
