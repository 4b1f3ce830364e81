import type { EventSourceMessage } from "eventsource-parser";
import { z } from "zod";
import { type Exchange, send } from "./http.ts";

const LATEST = "2025-11-25";

/** A client that does nothing by itself. */
export interface RawClient {
	/** `Mcp-Session-Id` */
	readonly session: string;
	post(token: string, message: object): Promise<Exchange>;
	get(token: string, cursor?: string): Promise<Exchange>;
	delete(token: string): Promise<Exchange>;
}

export function initialize(version = LATEST) {
	const params = {
		protocolVersion: version,
		capabilities: { elicitation: {} },
		clientInfo: { name: "raw", version: "1.0.0" },
	};
	return { jsonrpc: "2.0", id: 0, method: "initialize", params };
}

export function call(id: string | number, name: string, args: object = {}): object {
	const params = { name, arguments: args, _meta: { progressToken: `of ${id}` } };
	return { jsonrpc: "2.0", id, method: "tools/call", params };
}

export function headersOf(
	token: string | undefined,
	session?: string,
	version = LATEST,
): Record<string, string> {
	return {
		accept: "application/json, text/event-stream",
		"content-type": "application/json",
		"mcp-protocol-version": version,
		...(token !== undefined && { authorization: `Bearer ${token}` }),
		...(session !== undefined && { "mcp-session-id": session }),
	};
}

/** Names a session, whoever opened it. */
export function clientOf(origin: string, session: string, version = LATEST): RawClient {
	const headers = (token: string) => headersOf(token, session, version);
	return {
		session,
		post: (token, message) =>
			send(origin, { method: "POST", headers: headers(token), body: JSON.stringify(message) }),
		get: (token, cursor) =>
			send(origin, {
				method: "GET",
				headers: { ...headers(token), ...(cursor !== undefined && { "last-event-id": cursor }) },
			}),
		delete: (token) => send(origin, { method: "DELETE", headers: headers(token) }),
	};
}

/** Opens a session as MCP has it: `initialize`, then the notification that it is done. */
export async function openSession(origin: string, token: string, version = LATEST): Promise<RawClient> {
	const opening = await send(origin, {
		method: "POST",
		headers: headersOf(token, undefined, version),
		body: JSON.stringify(initialize(version)),
	});
	await opening.text();
	const { "mcp-session-id": session } = opening.headers;
	if (opening.status !== 200 || typeof session !== "string") throw new Error(`no session: ${opening.status}`);
	const client = clientOf(origin, session, version);
	const initialized = await client.post(token, { jsonrpc: "2.0", method: "notifications/initialized" });
	if (initialized.status !== 202) throw new Error(`not initialized: ${initialized.status}`);
	return client;
}

const message = z.object({
	id: z.union([z.string(), z.number()]).optional(),
	method: z.string().optional(),
	params: z.object({ progressToken: z.string(), message: z.string() }).partial().optional(),
	result: z.object({ content: z.array(z.object({ text: z.string() })).optional() }).optional(),
	error: z.object({ message: z.string() }).optional(),
});

/**
 * The events of a stream, a line for each: its place in the stream (`-`: no id), and what it says. `#2 of 7: page 1` is
 * progress of the call 7, `#3 7 = 1 pages about owls` its result.
 */
export function told({ events }: { readonly events: readonly EventSourceMessage[] }): string[] {
	return events.map(({ id, event, data }) => {
		const place = id === undefined ? "-" : `#${id.slice(id.lastIndexOf(".") + 1)}`;
		if (data === "") return `${place} cursor`;
		if (event === "error") return `${place} event: error`;
		const { id: of, method, params, result, error } = message.parse(JSON.parse(data));
		if (error !== undefined) return `${place} ${of} ! ${error.message}`;
		if (result !== undefined) return `${place} ${of} = ${result.content?.[0]?.text.slice(0, 80)}`;
		return `${place} ${params?.progressToken ?? method}${params?.message === undefined ? "" : `: ${params.message}`}`;
	});
}
