import { EventEmitter, once } from "node:events";
import type { ServerOptions } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { Writable } from "node:stream";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { McpServer } from "@modelcontextprotocol/server";
import Fastify, { type FastifyInstance } from "fastify";
import { z } from "zod";
import { resumeGuard } from "../../src/hosts/fastify.ts";
import type { TokenVerifier, TokenVerifierOptions } from "../../src/tokens/index.ts";
import { RESOURCE } from "./support.ts";

export interface Host {
	/** Where it listens; clients know it as `RESOURCE`, as behind a proxy. */
	readonly origin: string;
	/** What was answered, in order. */
	readonly answers: { readonly method: string; readonly status: number }[];
	/** Codes of decisions, in order. */
	readonly codes: string[];
	/** Lets the tool `wait` go on. */
	release(): void;
	/** Cuts every connection, as a network does. */
	cut(): void;
	close(): Promise<void>;
}

/** A guarded Fastify host with two tools, which need `RESOURCE`: `echo`, and `wait`, which reports progress first. */
export async function startHost(
	tokens: TokenVerifierOptions | TokenVerifier,
	https?: ServerOptions,
): Promise<Host> {
	const answers: Host["answers"] = [];
	const codes: string[] = [];
	const sockets = new Set<Socket>();
	const gate = new EventEmitter();
	const released = once(gate, "release");

	const stream = new Writable({
		write(line, _encoding, done) {
			const { mcp } = JSON.parse(String(line)) as { mcp?: { code: string } };
			if (mcp) codes.push(mcp.code);
			done();
		},
	});
	const app = Fastify({ logger: { level: "debug", stream }, ...(https && { https }) }) as FastifyInstance;
	app.server.on("connection", (socket) => {
		sockets.add(socket);
		socket.once("close", () => sockets.delete(socket));
	});
	app.addHook("onRequest", async (request, reply) => {
		reply.raw.once("close", () => answers.push({ method: request.method, status: reply.raw.statusCode }));
	});
	const need = { aud: [RESOURCE], scope: [] };
	await app.register(resumeGuard, {
		data: { resources: [RESOURCE], tools: { echo: need, wait: need } },
		tokens,
	});
	app.post("/mcp", async (request, reply) => {
		const { session, body } = request.mcp ?? {};
		if (session === undefined) return reply.code(400).send();
		let transport = session.transport;
		if (transport === undefined) {
			const created = session.attach(new NodeStreamableHTTPServerTransport(session.transportOptions));
			await createTools(released).connect(created);
			transport = created;
		}
		reply.hijack();
		await transport.handleRequest(request.raw, reply.raw, body);
	});
	await app.listen({ host: "127.0.0.1", port: 0 });

	return {
		origin: `${https ? "https" : "http"}://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
		answers,
		codes,
		release: () => void gate.emit("release"),
		cut() {
			for (const socket of sockets) socket.destroy();
		},
		close: () => app.close(),
	};
}

function createTools(released: Promise<unknown>): McpServer {
	const server = new McpServer({ name: "test", version: "1.0.0" });
	server.registerTool("echo", { inputSchema: z.object({ value: z.string() }) }, async ({ value }) =>
		text(value),
	);
	server.registerTool("wait", { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
		const progressToken = mcpReq._meta?.progressToken;
		if (progressToken !== undefined) {
			await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1 } });
		}
		await released;
		return text("done");
	});
	return server;
}

function text(value: string) {
	return { content: [{ type: "text" as const, text: value }] };
}

export const INITIALIZE = {
	jsonrpc: "2.0",
	id: 0,
	method: "initialize",
	params: {
		protocolVersion: "2025-11-25",
		capabilities: {},
		clientInfo: { name: "test", version: "1.0.0" },
	},
};

export function echo(value: string, id = 1): object {
	return { jsonrpc: "2.0", id, method: "tools/call", params: { name: "echo", arguments: { value } } };
}

/** Headers of every MCP request. */
export const MCP_HEADERS = {
	accept: "application/json, text/event-stream",
	"mcp-protocol-version": "2025-11-25",
};
