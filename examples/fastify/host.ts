import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import type { PolicyData } from "mcp-resume-guard";
import { resumeGuard } from "mcp-resume-guard/fastify";
import { type AuthorizationServer, startAuthorizationServer } from "./authorization-server.ts";
import { exampleData } from "./data.ts";
import { addDevDoors } from "./dev.ts";
import { freePort } from "./port.ts";
import { createTools } from "./tools.ts";
import { addUnguardedRoutes } from "./unguarded.ts";

export interface ExampleOptions {
	/** 0: any that is free. */
	readonly port?: number;
	/** Without the guard: what a host does that checks tokens and keeps events, each for itself. */
	readonly guarded?: boolean;
	/** Members of the policy data to set otherwise. */
	readonly data?: Partial<PolicyData>;
	readonly logger?: FastifyServerOptions["logger"];
}

export interface Example {
	/** The MCP endpoint. */
	readonly mcp: string;
	/** Example-only: the origin of `/dev/token` and `/dev/drop`. */
	readonly origin: string;
	readonly authorizationServer: AuthorizationServer;
	readonly app: FastifyInstance;
	close(): Promise<void>;
}

/** Starts the example: an MCP host on Fastify, and a real authorization server beside it, both on loopback. */
export async function startExample(options: ExampleOptions = {}): Promise<Example> {
	const port = options.port || (await freePort());
	const origin = `http://127.0.0.1:${port}`;
	const mcp = `${origin}/mcp`;
	const data = { ...exampleData(mcp), ...options.data };
	const authorizationServer = await startAuthorizationServer({ resources: () => true });
	const tokens = { issuer: authorizationServer.issuer, jwks: authorizationServer.jwks };

	const app = Fastify({ logger: options.logger ?? false });
	addDevDoors(app, authorizationServer);
	if (options.guarded === false) {
		await addUnguardedRoutes(app, tokens, data);
	} else {
		await app.register(resumeGuard, { data, tokens });
		app.post("/mcp", async (request, reply) => {
			const { session, body } = request.mcp ?? {};
			if (session === undefined) return reply.code(400).send();
			let transport = session.transport;
			if (transport === undefined) {
				const { id, eventStore } = session;
				const created = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: () => id, eventStore });
				await createTools().connect(created);
				transport = session.attach(created);
			}
			reply.hijack();
			await transport.handleRequest(request.raw, reply.raw, body);
		});
	}

	await app.listen({ host: "127.0.0.1", port });
	return {
		mcp,
		origin,
		authorizationServer,
		app,
		async close() {
			await app.close();
			await authorizationServer.close();
		},
	};
}
