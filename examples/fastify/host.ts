import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { McpServer } from "@modelcontextprotocol/server";
import Fastify, { type FastifyInstance, type FastifyServerOptions, LogController } from "fastify";
import { createMemoryEventLog, type EventLog, type PolicyData } from "mcp-resume-guard";
import { type ResumeGuardFastifyOptions, resumeGuard } from "mcp-resume-guard/fastify";
import { type AuthorizationServer, startAuthorizationServer } from "./authorization-server.ts";
import { exampleData } from "./data.ts";
import { addDevDoors } from "./dev.ts";
import { createGates, type Gates } from "./gates.ts";
import { freePort } from "./port.ts";
import { addSdkRoute } from "./sdk-route.ts";
import { createTools } from "./tools.ts";
import { addUnguardedRoutes, type EmittedEvent } from "./unguarded.ts";

export interface ExampleOptions {
	/** 0: any that is free. */
	readonly port?: number;
	/** Without the guard: what a host does that checks tokens, calls and events, each for itself. */
	readonly guarded?: boolean;
	/** On a transport of the MCP SDK, in place of the guard's own. */
	readonly sdkTransport?: boolean;
	/** Members of the policy data to set otherwise. */
	readonly data?: Partial<PolicyData>;
	/** A file of policy data that the host watches; where it is not there, it is made of `data`. */
	readonly dataFile?: string;
	/** Further options of the guard. */
	readonly guard?: Omit<ResumeGuardFastifyOptions, "data" | "bundle" | "watch" | "tokens" | "connect">;
	/** The MCP server of a session. Default: the one with the tools of the example. */
	readonly createServer?: (gates: Gates) => McpServer;
	/** Hears of each event that the host has stored for a client. */
	readonly onEvent?: (event: EmittedEvent) => void;
	readonly logger?: FastifyServerOptions["logger"];
	/** Whether a line is logged for each request. Default: true. */
	readonly logRequests?: boolean;
}

export interface Example {
	/** The MCP endpoint. */
	readonly mcp: string;
	/** Example-only: the origin of `/dev/token`, `/dev/drop` and `/dev/open`. */
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
	const { dataFile } = options;
	if (dataFile !== undefined && !existsSync(dataFile)) {
		writeFileSync(dataFile, `${JSON.stringify(data, undefined, 2)}\n`);
	}
	const authorizationServer = await startAuthorizationServer({ resources: () => true });
	const tokens = { issuer: authorizationServer.issuer, jwks: authorizationServer.jwks };
	const gates = createGates();
	const { onEvent, sdkTransport = false } = options;
	const createServer = () => (options.createServer ?? createTools)(gates);

	// A client may hold a connection open that it has not used yet; closing would wait for it.
	const app = Fastify({
		logger: options.logger ?? false,
		logController: new LogController({ disableRequestLogging: options.logRequests === false }),
		forceCloseConnections: true,
	});
	addDevDoors(app, authorizationServer, gates);
	if (options.guarded === false) {
		const read = dataFile === undefined ? data : JSON.parse(readFileSync(dataFile, "utf8"));
		await addUnguardedRoutes(app, tokens, read, createServer, onEvent ?? (() => {}));
	} else {
		const log = options.guard?.events ?? createMemoryEventLog();
		const events = onEvent === undefined ? log : overheard(log, onEvent);
		await app.register(resumeGuard, {
			...options.guard,
			events,
			...(dataFile === undefined ? { data } : { data: dataFile, watch: true }),
			tokens,
			...(!sdkTransport && { connect: (transport) => createServer().connect(transport), sse: {} }),
		});
		if (sdkTransport) addSdkRoute(app, createServer);
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

function overheard(events: EventLog, onEvent: (event: EmittedEvent) => void): EventLog {
	return {
		...events,
		async append(session, stream, event) {
			const id = await events.append(session, stream, event);
			onEvent({ id, tool: event.label.tool, message: JSON.parse(event.message) });
			return id;
		},
	};
}
