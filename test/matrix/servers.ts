import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CreateMessageResultSchema, ElicitResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { McpServer as McpServerV2 } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { GuardedSession } from "../../src/hosts/endpoint.ts";
import type { GuardTransport } from "../../src/hosts/own-transport.ts";
import type { NodeTransport } from "../../src/hosts/sdk.ts";
import { type Calls, progressText, type RunningCall } from "./calls.ts";

export type Sdk = "v1" | "v2";
/** What the MCP server of a session is connected to: a transport of its SDK, or the guard's own. */
export type TransportKind = "sdk" | "own";

interface Elicitation {
	readonly message: string;
	readonly requestedSchema: { type: "object"; properties: { answer: { type: "string" } } };
}

/** What the SDKs give a tool of the call that it runs for, under one name each. */
interface Request {
	readonly id: RunningCall["id"];
	readonly signal: AbortSignal;
	readonly progressToken: string | number | undefined;
	notify(method: string, params: object): Promise<void>;
	ask(
		method: "elicitation/create" | "sampling/createMessage",
		params: object,
		onprogress: ((update: { progress: number }) => void) | undefined,
	): Promise<unknown>;
	announce(text: string): Promise<void>;
	askAside(params: Elicitation): Promise<unknown>;
	readonly closeStream: (() => void) | undefined;
}

const TOOLS = ["search", "fetch"];
const info = { name: "matrix", version: "1.0.0" };
const capabilities = { capabilities: { logging: {} } };
const inputSchema = { name: z.string() };

/** Connects an MCP server of that SDK, with the tools `search` and `fetch`, to a transport of the SDK's for a session. */
export async function connectSdk(
	sdk: Sdk,
	session: GuardedSession<NodeTransport>,
	calls: Calls,
	json = false,
): Promise<NodeTransport> {
	const options = { ...session.transportOptions, enableJsonResponse: json };
	if (sdk === "v1") {
		const transport = session.attach(new StreamableHTTPServerTransport(options));
		// The SDK's own class does not fit its own interface under `exactOptionalPropertyTypes`.
		await createV1(calls).connect(transport as Transport);
		return transport;
	}
	const transport = session.attach(new NodeStreamableHTTPServerTransport(options));
	await createV2(calls).connect(transport);
	return transport;
}

/** Connects such a server to a transport of the guard's own. */
export async function connectOwn(sdk: Sdk, transport: GuardTransport, calls: Calls): Promise<void> {
	await (sdk === "v1" ? createV1(calls) : createV2(calls)).connect(transport);
}

function createV1(calls: Calls): McpServerV1 {
	const server = new McpServerV1(info, capabilities);
	for (const tool of TOOLS) {
		server.registerTool(tool, { inputSchema }, async ({ name }, extra) => {
			const { requestId, signal, _meta, sendNotification, sendRequest, closeSSEStream } = extra;
			return run(calls, tool, name, {
				id: requestId,
				signal,
				progressToken: _meta?.progressToken,
				notify: (method, params) => sendNotification({ method, params } as never),
				ask: (method, params, onprogress) =>
					sendRequest(
						{ method, params } as never,
						method === "elicitation/create" ? ElicitResultSchema : CreateMessageResultSchema,
						onprogress && { onprogress },
					),
				announce: (text) => server.sendLoggingMessage({ level: "info", data: text }),
				askAside: (params) => server.server.elicitInput(params),
				closeStream: closeSSEStream,
			});
		});
	}
	server.server.onerror = ({ message }) => void calls.errors.push(message);
	return server;
}

function createV2(calls: Calls): McpServerV2 {
	const server = new McpServerV2(info, capabilities);
	for (const tool of TOOLS) {
		server.registerTool(tool, { inputSchema: z.object(inputSchema) }, async ({ name }, { mcpReq, http }) =>
			run(calls, tool, name, {
				id: mcpReq.id,
				signal: mcpReq.signal,
				progressToken: mcpReq._meta?.progressToken,
				notify: (method, params) => mcpReq.notify({ method, params: { ...params } }),
				ask: (method, params, onprogress) =>
					mcpReq.send({ method, params: { ...params } }, onprogress && { onprogress }),
				announce: (text) => server.sendLoggingMessage({ level: "info", data: text }),
				askAside: (params) => server.server.elicitInput(params),
				closeStream: http?.closeSSE,
			}),
		);
	}
	server.server.onerror = ({ message }) => void calls.errors.push(message);
	return server;
}

async function run(calls: Calls, tool: string, name: string, request: Request) {
	const { id, signal, progressToken, notify, ask, announce, askAside, closeStream } = request;
	const elicitation: Elicitation = {
		message: `${tool} ${name} asks`,
		requestedSchema: { type: "object", properties: { answer: { type: "string" } } },
	};
	const text = await calls.run({
		name,
		tool,
		id,
		signal,
		async progress(step) {
			const message = progressText({ tool, name }, step);
			await notify("notifications/progress", { progressToken, progress: step, message });
		},
		elicit: (options) =>
			ask("elicitation/create", elicitation, options && (({ progress }) => options.onprogress(progress))),
		elicitAside: () => askAside(elicitation),
		async sample() {
			const content = { type: "text", text: `${tool} ${name} asks` };
			return ask(
				"sampling/createMessage",
				{ messages: [{ role: "user", content }], maxTokens: 10 },
				undefined,
			);
		},
		announce,
		closeStream: () => closeStream?.(),
	});
	return { content: [{ type: "text" as const, text }] };
}
