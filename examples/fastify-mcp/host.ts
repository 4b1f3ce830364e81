import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import Fastify, { type FastifyInstance } from "fastify";
import { Sessions, streamableHttp } from "fastify-mcp";
import { type ResumeGuardFastifyOptions, resumeGuard } from "mcp-resume-guard/fastify";
import { createTap, type Inner } from "../mcp-lite/tap.ts";

/**
 * An MCP host on Fastify with the servers and sessions of fastify-mcp. Its plugin and the guard's both have GET and
 * DELETE of their endpoint, so it is on an instance of its own that does not listen: the guard asks it in process.
 */
export async function createFastifyMcpHost(
	options: ResumeGuardFastifyOptions,
	createServer: () => Server,
): Promise<FastifyInstance> {
	const inner = await createInner(createServer);
	const app = Fastify();
	await app.register(resumeGuard, options);
	app.post("/mcp", async (request, reply) => {
		const { session, body } = request.mcp ?? {};
		if (session === undefined) return reply.code(400).send();
		const transport = session.transport ?? session.attach(overNode(createTap(session, inner)));
		reply.hijack();
		await transport.handleRequest(request.raw, reply.raw, body);
	});
	return app;
}

async function createInner(createServer: () => Server): Promise<Inner> {
	const app = Fastify();
	const current = new AsyncLocalStorage<object | undefined>();
	app.addHook("onRequest", async ({ raw }) => void Object.assign(raw, { auth: current.getStore() }));
	await app.register(streamableHttp, {
		stateful: true,
		mcpEndpoint: "/mcp",
		sessions: new Sessions<StreamableHTTPServerTransport>(),
		createServer,
	});
	return async (request, authInfo) => {
		const sent = {
			method: request.method as "GET" | "POST" | "DELETE",
			url: "/mcp",
			headers: Object.fromEntries(request.headers),
			payload: await request.text(),
			payloadAsStream: true,
		};
		const response = await current.run(authInfo, () => app.inject(sent));
		const { statusCode: status, headers } = response;
		const named = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
		return new Response(Readable.toWeb(response.stream()) as never, { status, headers: named });
	};
}

// Fastify's requests and responses are those of node:http.
function overNode(tap: ReturnType<typeof createTap>) {
	return {
		...tap,
		async handleRequest(
			request: IncomingMessage & { auth?: never },
			response: ServerResponse,
			body?: unknown,
		) {
			const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [
				name,
				String(value),
			]);
			const web = new Request("http://inner/mcp", { method: "POST", headers });
			const answer = await tap.handleRequest(web, { parsedBody: body, authInfo: request.auth });
			response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
			if (answer.body === null) response.end();
			// A client that leaves is no fault.
			else await pipeline(Readable.fromWeb(answer.body as never), response).catch(() => undefined);
		},
	};
}
