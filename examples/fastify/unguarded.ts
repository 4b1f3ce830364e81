import { randomUUID } from "node:crypto";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { InMemoryEventStore } from "@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js";
import type { FastifyInstance } from "fastify";
import {
	bearerToken,
	createTokenVerifier,
	type PolicyData,
	type TokenVerifierOptions,
} from "mcp-resume-guard";
import { createTools } from "./tools.ts";

/**
 * The same host without the guard, for comparison: it verifies each token, and the SDK keeps the sessions and replays
 * from its example event store. Each part behaves correctly.
 */
export async function addUnguardedRoutes(
	app: FastifyInstance,
	tokens: TokenVerifierOptions,
	data: PolicyData,
): Promise<void> {
	const verify = createTokenVerifier(tokens, data);
	const transports = new Map<string, NodeStreamableHTTPServerTransport>();

	app.route({
		method: ["GET", "POST", "DELETE"],
		url: "/mcp",
		async handler(request, reply) {
			const token = bearerToken(request.headers.authorization);
			const claims = token && (await verify(token, request).catch(() => undefined));
			if (!claims) return reply.code(401).send();
			const id = request.headers["mcp-session-id"];
			const transport = transports.get(String(id)) ?? (id === undefined ? await open() : undefined);
			if (transport === undefined) return reply.code(404).send();
			reply.hijack();
			await transport.handleRequest(request.raw, reply.raw, request.body);
		},
	});

	async function open(): Promise<NodeStreamableHTTPServerTransport> {
		const transport = new NodeStreamableHTTPServerTransport({
			sessionIdGenerator: randomUUID,
			eventStore: new InMemoryEventStore(),
			onsessioninitialized: (id) => void transports.set(id, transport),
		});
		await createTools().connect(transport);
		return transport;
	}
}
