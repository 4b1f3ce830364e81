import type { McpServer } from "@modelcontextprotocol/server";
import Fastify from "fastify";
import { resumeGuard } from "mcp-resume-guard/fastify";
import { describe } from "vitest";
import { addSdkRoute } from "../../examples/fastify/sdk-route.ts";
import type { EndpointOptions } from "../../src/hosts/endpoint.ts";
import { connectTests, type StartConnected } from "./suite/connect.ts";
import { hostSuite } from "./suite.ts";
import type { Host, StartHost } from "./support/host.ts";
import { originOf } from "./support/listen.ts";

const startConnected: StartConnected = (options, connect) => listen({ ...options, connect });

const start: StartHost = (options, createServer) =>
	startConnected(options, (transport) => createServer().connect(transport));

const startOnSdk: StartHost = async (options, createServer) => listen(options, createServer);

async function listen(options: EndpointOptions, createServer?: () => McpServer): Promise<Host> {
	const app = Fastify({ bodyLimit: 4 * 1024 * 1024 });
	await app.register(resumeGuard, options);
	if (createServer !== undefined) addSdkRoute(app, createServer);
	await app.listen({ host: "127.0.0.1", port: 0 });
	return {
		origin: originOf(app.server),
		endSessions: (match) => app.resumeGuard.endSessions(match),
		close: () => app.close(),
	};
}

hostSuite("Fastify", start);
describe("Fastify: connected servers", () => connectTests(startConnected));
hostSuite("Fastify, a transport of the SDK", startOnSdk);
