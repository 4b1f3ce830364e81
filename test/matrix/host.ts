import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { createMemoryEventLog, type EventLog, type PolicyData } from "mcp-resume-guard";
import { resumeGuard } from "mcp-resume-guard/fastify";
import { createNodeGuard, type NodeHandler } from "mcp-resume-guard/node";
import type { GuardedRequest } from "../../src/hosts/endpoint.ts";
import type { Logger } from "../../src/hosts/log.ts";
import type { GuardTransport } from "../../src/hosts/own-transport.ts";
import type { NodeTransport } from "../../src/hosts/sdk.ts";
import { type Calls, createCalls } from "./calls.ts";
import { connectOwn, connectSdk, type Sdk, type TransportKind } from "./servers.ts";
import { data, ISSUER, jwks } from "./tokens.ts";

export interface HostOptions {
	/** The MCP server behind the guard. */
	readonly server: Sdk;
	/** Default: node:http. */
	readonly kind?: "node" | "fastify";
	/** Default: the SDK's. */
	readonly transport?: TransportKind;
	/** Members of the policy data to set otherwise. */
	readonly data?: Partial<PolicyData>;
	readonly events?: EventLog;
	/** The server answers with JSON in place of streams (`enableJsonResponse` of the SDKs' transports). */
	readonly json?: boolean;
}

/** An MCP server, and all that is between it and the wire. */
export type Behind = Required<Pick<HostOptions, "server" | "kind" | "transport">>;

export interface Host {
	readonly port: number;
	/** The tool calls that run in it. */
	readonly calls: Calls;
	close(): Promise<void>;
}

/** That refusals are as they should be is for tests to say. */
export function createLogger(): Logger {
	return { debug() {}, info() {}, warn() {}, error: (facts, message) => console.error(message, facts) };
}

/** Starts a guarded MCP host on loopback. */
export async function startHost(options: HostOptions): Promise<Host> {
	const calls = createCalls();
	const isOwn = options.transport === "own";
	if (isOwn && options.json) throw new Error("the guard's own transport answers with streams only");
	const connect = (transport: GuardTransport) => connectOwn(options.server, transport, calls);
	const guard = {
		data: { ...data, ...options.data },
		tokens: { issuer: ISSUER, jwks },
		events: options.events ?? createMemoryEventLog(),
		...(isOwn && { connect }),
	};
	const transportOf = async ({ session }: GuardedRequest<NodeTransport>): Promise<NodeTransport> => {
		if (session === undefined) throw new Error("every request has a session");
		return session.transport ?? (await connectSdk(options.server, session, calls, options.json));
	};

	if (options.kind === "fastify") {
		// A client's spare connections do not count as idle.
		const app = Fastify({ forceCloseConnections: true });
		await app.register(resumeGuard, guard);
		if (!isOwn) {
			app.post("/mcp", async (request, reply) => {
				if (request.mcp === undefined) return reply.code(500).send();
				const transport = await transportOf(request.mcp);
				reply.hijack();
				await transport.handleRequest(request.raw, reply.raw, request.mcp.body);
			});
		}
		await app.listen({ port: 0, host: "127.0.0.1" });
		return { port: portOf(app.server.address()), calls, close: () => app.close() };
	}

	const node = await createNodeGuard({ ...guard, logger: createLogger() });
	const handle: NodeHandler = async (request, response, mcp) => {
		const transport = await transportOf(mcp);
		await transport.handleRequest(request, response, mcp.body);
	};
	const server = createServer(node.listener(isOwn ? undefined : handle));
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	return {
		port: portOf(server.address()),
		calls,
		async close() {
			await node.close();
			const closed = once(server, "close");
			server.close();
			server.closeAllConnections();
			await closed;
		},
	};
}

function portOf(address: string | AddressInfo | null): number {
	if (typeof address !== "object" || address === null) throw new Error("not listening");
	return address.port;
}
