import { FastMCP } from "fastmcp";
import type { Claims, PolicyData, TokenVerifierOptions } from "mcp-resume-guard";
import { createGate } from "./gate.ts";

/** A server of fastmcp that serves by itself, with the guard in its `authenticate`, `onToolCall` and `eventStore`. */
export async function startFastMcp(
	{ port, data, tokens }: { port: number; data: PolicyData; tokens: TokenVerifierOptions },
	addTools: (server: FastMCP<{ claims: Claims }>) => void,
): Promise<FastMCP<{ claims: Claims }>> {
	const metadata = `http://127.0.0.1:${port}/.well-known/oauth-protected-resource`;
	const gate = await createGate(data, tokens, metadata);
	const server = new FastMCP<{ claims: Claims }>({
		name: "example",
		version: "1.0.0",
		authenticate: gate.authenticate,
		onToolCall: gate.onToolCall,
		oauth: {
			enabled: true,
			protectedResource: { resource: data.resources[0] ?? "", authorizationServers: [tokens.issuer] },
		},
		ping: { enabled: false },
	});
	server.on("connect", gate.onConnect);
	addTools(server);
	await server.start({
		transportType: "httpStream",
		httpStream: { host: "127.0.0.1", port, cors: false, eventStore: gate.eventStore },
	});
	return server;
}
