import { isRecord, parse } from "./decision.ts";
import type { Subject } from "./events.ts";

/** What a server says of a tool (MCP 2025-11-25, ToolAnnotations). Its own word: it may be wrong, or a lie. */
export interface ToolAnnotations {
	readonly readOnlyHint?: boolean;
	readonly destructiveHint?: boolean;
	readonly idempotentHint?: boolean;
	readonly openWorldHint?: boolean;
}

/** A request that waits for its result or error. */
export interface Call extends Subject {
	readonly id: string | number;
	readonly method: string;
}

/** What a POST carries, as far as it matters here. */
export interface Posted {
	readonly calls: readonly Call[];
	/** Ids of calls that it cancels. */
	readonly cancelled: readonly (string | number)[];
}

/** Calls by their id, as text: MCP clients give numbers, and take a number back as text. */
export type Calls = Map<string, Call>;

/** Reads the body of a POST. */
export function readPosted(body: unknown): Posted {
	const messages = typeof body === "string" ? [parse(body)].flat().filter(isRecord) : [];
	return {
		calls: messages.flatMap((message) => {
			const { id, method, params } = message;
			if (typeof method !== "string" || !isId(id)) return [];
			const tool = method === "tools/call" && isRecord(params) ? params.name : undefined;
			return [{ id, method, ...(typeof tool === "string" && { tool }) }];
		}),
		cancelled: messages.flatMap(({ method, params }) =>
			method === "notifications/cancelled" && isRecord(params) && isId(params.requestId)
				? [params.requestId]
				: [],
		),
	};
}

/** The id that a message is the response to; `undefined`: it is no response. */
export function responseId(message: unknown): string | undefined {
	if (!isRecord(message) || message.method !== undefined || !isId(message.id)) return undefined;
	return message.result === undefined && message.error === undefined ? undefined : String(message.id);
}

/** Keeps what the server says of its tools, if the message is its answer to `tools/list`. */
export function noteAnnotations(
	annotations: Map<string, ToolAnnotations>,
	call: Call | undefined,
	message: unknown,
): void {
	if (call?.method !== "tools/list" || !isRecord(message) || !isRecord(message.result)) return;
	const { tools } = message.result;
	for (const tool of Array.isArray(tools) ? tools : []) {
		if (isRecord(tool) && typeof tool.name === "string")
			annotations.set(tool.name, readAnnotations(tool.annotations));
	}
}

const hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

function readAnnotations(value: unknown): ToolAnnotations {
	const given = isRecord(value) ? value : {};
	return Object.fromEntries(
		hints.flatMap((hint) => (typeof given[hint] === "boolean" ? [[hint, given[hint]]] : [])),
	);
}

function isId(value: unknown): value is string | number {
	return typeof value === "string" || typeof value === "number";
}
