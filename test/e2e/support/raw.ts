import type { EventSourceMessage } from "eventsource-parser";
import { onTestFinished } from "vitest";
import { framesOf } from "../../../examples/demo/recorder.ts";
import type { Host } from "./host.ts";

/** A request by hand. A header that is `null` is left out. */
export interface Asking {
	readonly method?: string;
	readonly token?: string;
	readonly session?: string;
	readonly cursor?: string;
	/** Sent as JSON, unless it is a string. */
	readonly body?: unknown;
	readonly headers?: Readonly<Record<string, string | null>>;
}

/** A response that is read as it comes. */
export interface Reply {
	readonly status: number;
	readonly headers: Headers;
	readonly text: string;
	readonly frames: readonly EventSourceMessage[];
	/** `cut`: not ended, but broken off. */
	readonly end: "open" | "clean" | "cut";
	/** Resolves when `condition` holds; it is looked at whenever something has come. */
	until(condition: (reply: Reply) => boolean): Promise<Reply>;
	/** Resolves when all has come, or it has been cut. */
	ended(): Promise<Reply>;
	leave(): void;
}

export const VERSION = "2025-11-25";

export async function ask(host: Host, asking: Asking = {}): Promise<Reply> {
	const { method = "POST", token, session, cursor, body, headers = {} } = asking;
	const all = {
		accept: method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
		"content-type": body === undefined ? null : "application/json",
		authorization: token === undefined ? null : `Bearer ${token}`,
		"mcp-session-id": session ?? null,
		"mcp-protocol-version": session === undefined ? null : VERSION,
		"last-event-id": cursor ?? null,
		...headers,
	};
	const aborting = new AbortController();
	const response = await fetch(host.mcp, {
		method,
		headers: Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [[name, value]])) as [
			string,
			string,
		][],
		...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
		signal: aborting.signal,
	});
	onTestFinished(() => aborting.abort());
	return readReply(response, () => aborting.abort());
}

function readReply(response: Response, leave: () => void): Reply {
	const waiting = new Set<() => void>();
	let text = "";
	let end: Reply["end"] = "open";

	const reply: Reply = {
		status: response.status,
		headers: response.headers,
		get text() {
			return text;
		},
		get frames() {
			return framesOf(text);
		},
		get end() {
			return end;
		},
		until(condition) {
			return new Promise((resolve) => {
				const look = () => {
					if (!condition(reply)) return;
					waiting.delete(look);
					resolve(reply);
				};
				waiting.add(look);
				look();
			});
		},
		ended: () => reply.until((reply) => reply.end !== "open"),
		leave,
	};

	async function read(): Promise<void> {
		const decoder = new TextDecoder();
		try {
			for await (const chunk of response.body ?? []) {
				text += decoder.decode(chunk, { stream: true });
				for (const look of [...waiting]) look();
			}
			end = "clean";
		} catch {
			end = "cut";
		}
		for (const look of [...waiting]) look();
	}
	void read();
	return reply;
}

export const initialize = {
	jsonrpc: "2.0",
	id: 0,
	method: "initialize",
	params: { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: "raw", version: "1.0.0" } },
};

/** Opens a session by hand, with nothing but the two requests that it takes. */
export async function openSession(host: Host, token?: string): Promise<string> {
	const credentials = token === undefined ? {} : { token };
	const reply = await (await ask(host, { ...credentials, body: initialize })).ended();
	const session = reply.headers.get("mcp-session-id");
	if (session === null) throw new Error(`no session: ${reply.status} ${reply.text}`);
	host.keepSecret(session);
	const body = { jsonrpc: "2.0", method: "notifications/initialized" };
	await (await ask(host, { ...credentials, session, body })).ended();
	return session;
}

/** A tools/call that asks for progress under its own id. */
export function toolCall(id: string | number, tool: string, args: object = {}): object {
	const params = { name: tool, arguments: args, _meta: { progressToken: id } };
	return { jsonrpc: "2.0", id, method: "tools/call", params };
}

/** The ids of the events with a message, in order. */
export function idsOf({ frames }: Reply): string[] {
	return frames.flatMap(({ id, data }) => (id !== undefined && data !== "" ? [id] : []));
}

/** The messages that came, in order. */
export function messagesOf({
	frames,
}: Reply): { id?: unknown; method?: string; result?: object; error?: { code: number; data?: object } }[] {
	return frames
		.filter(({ event, data }) => event !== "error" && data !== "")
		.map(({ data }) => JSON.parse(data));
}

/** The last id that an SSE client would remember. */
export function cursorOf({ frames }: Reply): string {
	return frames.findLast(({ id }) => id !== undefined && id !== "")?.id ?? "";
}

/** A call whose stream has been cut after it had `events` events; what else there is has been stored. */
export async function callAndDrop(
	host: Host,
	{ token, session, id = 1, tool, args }: DroppedCall,
	events = 1,
): Promise<string> {
	const reply = await ask(host, { token, session, body: toolCall(id, tool, args) });
	await reply.until(({ frames }) => frames.length >= events);
	await host.drop(session);
	await reply.ended();
	return cursorOf(reply);
}

export interface DroppedCall {
	readonly token: string;
	readonly session: string;
	readonly id?: string | number;
	readonly tool: string;
	readonly args?: object;
}
