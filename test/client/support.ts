import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
	Client as ClientV2,
	StreamableHTTPClientTransport as TransportV2,
} from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Fetch, RecoveryEvent } from "../../src/client/index.ts";

/** A client of one of the SDKs, connected. */
export interface TestClient {
	readonly session: string;
	/** What the SDK could do nothing with. */
	readonly errors: Error[];
	/** Resolves with the text of the result. */
	tool(
		name: string,
		given?: object,
		onprogress?: (step: number) => void,
		signal?: AbortSignal,
	): Promise<string>;
	list(): Promise<unknown>;
	close(): Promise<void>;
}

export interface Sdk {
	readonly name: "v1" | "v2";
	connect(url: string, fetch: Fetch): Promise<TestClient>;
}

const info = { name: "test", version: "1.0.0" };

export const sdks: readonly Sdk[] = [
	{
		name: "v1",
		async connect(url, fetch) {
			const client = new ClientV1(info);
			const transport = new TransportV1(new URL(url), { fetch });
			const errors: Error[] = [];
			client.onerror = (error) => errors.push(error);
			await client.connect(transport as Parameters<ClientV1["connect"]>[0]);
			return {
				session: transport.sessionId ?? "",
				errors,
				async tool(name, given, onprogress, signal) {
					const params = { name, arguments: { ...given } };
					return textOf(await client.callTool(params, undefined, optionsOf(onprogress, signal)));
				},
				list: () => client.listTools(),
				close: () => client.close(),
			};
		},
	},
	{
		name: "v2",
		async connect(url, fetch) {
			const client = new ClientV2(info);
			const transport = new TransportV2(new URL(url), { fetch });
			const errors: Error[] = [];
			client.onerror = (error) => errors.push(error);
			await client.connect(transport);
			return {
				session: transport.sessionId ?? "",
				errors,
				async tool(name, given, onprogress, signal) {
					return textOf(
						await client.callTool({ name, arguments: { ...given } }, optionsOf(onprogress, signal)),
					);
				},
				list: () => client.listTools(),
				close: () => client.close(),
			};
		},
	},
];

function optionsOf(onprogress: ((step: number) => void) | undefined, signal: AbortSignal | undefined) {
	return {
		...(onprogress && { onprogress: ({ progress }: { progress: number }) => onprogress(progress) }),
		...(signal && { signal }),
	};
}

function textOf(result: unknown): string {
	const { content } = result as { content: { text: string }[] };
	return content.map(({ text }) => text).join();
}

/** Things that come one by one, and can be waited for. */
export interface Heard<T> {
	readonly all: readonly T[];
	hear(item: T): void;
	/** Resolves with the first that is so, past or to come. */
	first(isSo: (item: T) => boolean): Promise<T>;
}

export function createHeard<T>(): Heard<T> {
	const all: T[] = [];
	const waiting = new Set<() => void>();
	return {
		all,
		hear(item) {
			all.push(item);
			for (const look of waiting) look();
		},
		first: (isSo) =>
			new Promise((resolve) => {
				const look = () => {
					const index = all.findIndex(isSo);
					if (index < 0) return;
					waiting.delete(look);
					resolve(all[index] as T);
				};
				waiting.add(look);
				look();
			}),
	};
}

/** What happened in a recovery, in short. */
export function steps(events: readonly RecoveryEvent[]): string[] {
	return events.map((event) => {
		switch (event.type) {
			case "refused":
				return `refused ${event.outcome}`;
			case "token":
				return `token ${event.reason}`;
			case "failed":
				return `failed ${event.code}`;
			default:
				return event.type;
		}
	});
}

export interface RawServer {
	readonly origin: string;
	close(): Promise<void>;
}

/** A server that answers with whatever it is told to. */
export async function startRaw(
	handle: (request: IncomingMessage, response: ServerResponse, body: string) => unknown,
): Promise<RawServer> {
	const server = createServer(async (request, response) => {
		let body = "";
		for await (const chunk of request) body += chunk;
		await handle(request, response, body);
	}).listen(0, "127.0.0.1");
	await once(server, "listening");
	return {
		origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		async close() {
			server.close();
			server.closeAllConnections();
			await once(server, "close");
		},
	};
}

/** How a {@link startScripted} server answers a tool call, and whoever comes back for its result. */
export interface Script {
	/** `id` is the JSON-RPC id of the call. */
	readonly call: (response: ServerResponse, id: number, calls: number) => unknown;
	/** `id` is that of the last call; `gets` counts them from 1. */
	readonly resume?: (response: ServerResponse, id: number, gets: number, request: IncomingMessage) => unknown;
	/** Anything else, such as metadata. */
	readonly other?: (request: IncomingMessage, response: ServerResponse) => unknown;
}

/** The least of an MCP server: one that does anything at all, right or wrong, with a tool call. */
export async function startScripted({ call, resume, other }: Script): Promise<RawServer & { mcp: string }> {
	let last = 0;
	let calls = 0;
	let gets = 0;
	let sessions = 0;
	const raw = await startRaw((request, response, body) => {
		if (request.url !== "/mcp") return other ? other(request, response) : response.writeHead(404).end();
		if (request.method === "GET") {
			if (request.headers["last-event-id"] === undefined || !resume) return response.writeHead(405).end();
			gets += 1;
			return resume(response, last, gets, request);
		}
		const { id, method, params } = JSON.parse(body);
		if (method === "initialize") {
			const result = {
				protocolVersion: params.protocolVersion,
				capabilities: { tools: {} },
				serverInfo: { name: "scripted", version: "1.0.0" },
			};
			sessions += 1;
			response.writeHead(200, {
				"content-type": "application/json",
				"mcp-session-id": `session-${sessions}`,
			});
			return response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
		}
		if (id === undefined) return response.writeHead(202).end();
		last = id;
		calls += 1;
		return call(response, id, calls);
	});
	return { ...raw, mcp: `${raw.origin}/mcp` };
}

/** The head of an SSE stream, and these frames. */
export function stream(response: ServerResponse, ...frames: readonly string[]): ServerResponse {
	response.writeHead(200, { "content-type": "text/event-stream" });
	response.write(frames.join(""));
	return response;
}

export function message(value: object, eventId?: string): string {
	return `${eventId === undefined ? "" : `id: ${eventId}\n`}data: ${JSON.stringify({ jsonrpc: "2.0", ...value })}\n\n`;
}

export function result(id: number, text: string, eventId?: string): string {
	return message({ id, result: { content: [{ type: "text", text }] } }, eventId);
}

export function json(response: ServerResponse, status: number, body: unknown): ServerResponse {
	response.writeHead(status, { "content-type": "application/json" });
	return response.end(JSON.stringify(body));
}

/** An HTTP error with a decision, as the guard sends it. */
export function refuse(
	response: ServerResponse,
	decision: { readonly status: number; readonly [member: string]: unknown },
): ServerResponse {
	return json(response, decision.status, {
		jsonrpc: "2.0",
		id: null,
		error: { code: -32043, message: "refused", data: decision },
	});
}
