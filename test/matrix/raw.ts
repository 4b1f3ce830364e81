import { setTimeout as sleep } from "node:timers/promises";
import type { EventSourceMessage } from "eventsource-parser";
import { framesOf } from "../../examples/demo/recorder.ts";
import type { RequestId } from "../../src/generated/types.ts";

/** A JSON-RPC message, or a batch of them. */
export type Body = object | readonly object[];

/** A response as it comes in. */
export interface Incoming {
	readonly status: number;
	readonly headers: Headers;
	/** The body so far. */
	readonly text: string;
	/** `cut`: the connection was broken off. */
	readonly end: "open" | "clean" | "cut";
	/** The server-sent events so far. */
	readonly frames: EventSourceMessage[];
	/** Their messages, without the events that have none. */
	readonly messages: unknown[];
	/** Resolves when the response has ended, with how. */
	readonly ended: Promise<"clean" | "cut">;
	/** Resolves when there are so many messages; rejects if the response ends before that. */
	has(messages: number): Promise<unknown[]>;
	/** Breaks the connection off. */
	leave(): void;
}

export interface RequestOptions {
	/** Default: the one that the session was opened with. */
	readonly token?: string;
}

/** An MCP session that is spoken by hand. */
export interface RawSession {
	readonly id: string;
	/** Resolves with the response when its head is there. */
	post(body: Body, options?: RequestOptions): Promise<Incoming>;
	/** The session's own stream, or with a cursor that of the cursor. */
	get(cursor?: string, options?: RequestOptions): Promise<Incoming>;
}

export const REVISION = "2025-11-25";
/** The newest revision without priming events. */
export const UNPRIMED = "2025-06-18";

export async function openRaw(port: number, token: string, version: string = REVISION): Promise<RawSession> {
	const url = `http://127.0.0.1:${port}/mcp`;

	async function send(method: string, headers: Record<string, string>, body?: Body): Promise<Incoming> {
		const leaving = new AbortController();
		const response = await fetch(url, {
			method,
			headers: {
				accept: "application/json, text/event-stream",
				"mcp-protocol-version": version,
				...(body !== undefined && { "content-type": "application/json" }),
				...headers,
			},
			...(body !== undefined && { body: JSON.stringify(body) }),
			signal: leaving.signal,
		});
		return read(response, () => leaving.abort());
	}

	const params = {
		protocolVersion: version,
		capabilities: { elicitation: {}, sampling: {} },
		clientInfo: { name: "raw", version: "1.0.0" },
	};
	const initialize = { jsonrpc: "2.0", id: "initialize", method: "initialize", params };
	const opened = await send("POST", { authorization: `Bearer ${token}` }, initialize);
	await opened.ended;
	const id = opened.headers.get("mcp-session-id");
	if (id === null) throw new Error(`no session: ${opened.status} ${opened.text}`);

	const headersOf = (options: RequestOptions = {}) => ({
		authorization: `Bearer ${options.token ?? token}`,
		"mcp-session-id": id,
	});
	const session: RawSession = {
		id,
		post: (body, options) => send("POST", headersOf(options), body),
		get: (cursor, options) =>
			send("GET", { ...headersOf(options), ...(cursor !== undefined && { "last-event-id": cursor }) }),
	};
	const initialized = await session.post({ jsonrpc: "2.0", method: "notifications/initialized" });
	if (initialized.status !== 202) throw new Error(`not initialized: ${initialized.status}`);
	return session;
}

/** A `tools/call`, named in its arguments, that asks for progress. */
export function toolCall(id: RequestId, tool: string, name: string): object {
	const params = { name: tool, arguments: { name }, _meta: { progressToken: id } };
	return { jsonrpc: "2.0", id, method: "tools/call", params };
}

export function cancel(requestId: RequestId): object {
	return { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
}

function read(response: Response, leave: () => void): Incoming {
	let text = "";
	let end: Incoming["end"] = "open";

	async function drain(): Promise<"clean" | "cut"> {
		const decoder = new TextDecoder();
		try {
			for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true });
			end = "clean";
		} catch {
			end = "cut";
		}
		return end;
	}

	const incoming: Incoming = {
		status: response.status,
		headers: response.headers,
		get text() {
			return text;
		},
		get end() {
			return end;
		},
		get frames() {
			return framesOf(text);
		},
		get messages() {
			return framesOf(text).flatMap(({ event, data }) =>
				data === "" || event === "error" ? [] : [JSON.parse(data)],
			);
		},
		ended: drain(),
		async has(count) {
			while (incoming.messages.length < count) {
				if (end !== "open") throw new Error(`ended (${end}) with ${incoming.messages.length} messages`);
				await sleep(5);
			}
			return incoming.messages;
		},
		leave,
	};
	return incoming;
}
