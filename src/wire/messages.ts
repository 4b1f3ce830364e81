import { z } from "zod";
import type { RequestId } from "../generated/types.ts";

/** A JSON-RPC message of a client, by what it asks of the guard. */
export type ClientMessage =
	/** A request about the session: initialize, ping, a list, logging/setLevel. */
	| { readonly kind: "session"; readonly rpc: string; readonly request_id: RequestId }
	/** A request that starts work, or returns content. */
	| { readonly kind: "call"; readonly tool?: string; readonly rpc?: string; readonly request_id: RequestId }
	/** A notification that refers to no call. */
	| { readonly kind: "notification"; readonly rpc: string }
	/** notifications/cancelled: refers to a call of the client's own. */
	| { readonly kind: "cancel"; readonly request_id: RequestId }
	/** An answer to a request of the server's, or progress on it: refers to the event `reference`. */
	| { readonly kind: "answer" | "progress"; readonly reference: string };

const id = z.union([z.string(), z.number()]);
const params = z.record(z.string(), z.unknown()).optional();
// Without `optional`, zod asks for the key to be there.
const absent = z.undefined().optional();
const request = z.object({ jsonrpc: z.literal("2.0"), method: z.string().min(1), id, params });
const notification = z.object({
	jsonrpc: z.literal("2.0"),
	method: z.string().min(1),
	id: absent,
	params,
});
const response = z.union([
	z.object({
		jsonrpc: z.literal("2.0"),
		id,
		result: z.record(z.string(), z.unknown()),
		error: absent,
	}),
	z.object({ jsonrpc: z.literal("2.0"), id, result: absent, error: z.object({ code: z.number() }) }),
]);

/**
 * Reads one message of a POST body; `undefined`: it is none, or could be read as more than one kind.
 * MCP 2025-11-25 sections Requests, Responses, Notifications.
 */
export function readMessage(value: unknown): ClientMessage | undefined {
	if (typeof value !== "object" || value === null) return undefined;
	if (!Object.hasOwn(value, "method")) {
		const parsed = response.safeParse(value);
		return parsed.success ? { kind: "answer", reference: answerReference(parsed.data.id) } : undefined;
	}
	if (Object.hasOwn(value, "result") || Object.hasOwn(value, "error")) return undefined;
	return Object.hasOwn(value, "id") ? readRequest(value) : readNotification(value);
}

function readRequest(value: unknown): ClientMessage | undefined {
	const parsed = request.safeParse(value);
	if (!parsed.success) return undefined;
	const { method, id: request_id, params } = parsed.data;
	if (isOfSession(method)) return { kind: "session", rpc: method, request_id };
	if (method !== "tools/call") return { kind: "call", rpc: method, request_id };
	const tool = params?.name;
	return typeof tool === "string" ? { kind: "call", tool, request_id } : undefined;
}

function readNotification(value: unknown): ClientMessage | undefined {
	const parsed = notification.safeParse(value);
	if (!parsed.success) return undefined;
	const { method, params } = parsed.data;
	if (method === "notifications/cancelled" && params?.requestId !== undefined) {
		const cancelled = id.safeParse(params?.requestId);
		return cancelled.success ? { kind: "cancel", request_id: cancelled.data } : undefined;
	}
	if (method === "notifications/progress") {
		const token = id.safeParse(params?.progressToken);
		return token.success ? { kind: "progress", reference: progressReference(token.data) } : undefined;
	}
	return { kind: "notification", rpc: method };
}

/** Methods that hand out no content of a call. tasks/list does: it shows what other calls have left. */
function isOfSession(method: string): boolean {
	if (method.startsWith("tasks/")) return false;
	return (
		method === "initialize" || method === "ping" || method === "logging/setLevel" || method.endsWith("/list")
	);
}

function answerReference(requestId: RequestId): string {
	return `answer ${typeof requestId} ${requestId}`;
}

function progressReference(token: RequestId): string {
	return `progress ${typeof token} ${token}`;
}

const emitted = z.object({
	method: z.string().optional(),
	id: id.optional(),
	params: z.object({ _meta: z.object({ progressToken: id.optional() }).optional() }).optional(),
});

/** A message of the server's, as far as it matters to the log. */
export interface ServerMessage {
	/** The call that it is the response to. */
	readonly response?: RequestId;
	/** Names under which the client may refer to it: it is a request. */
	readonly references: readonly string[];
}

/** Reads what the MCP server emits. Only a response names its request by `id`. */
export function readEmitted(message: unknown): ServerMessage {
	const parsed = emitted.safeParse(message);
	if (!parsed.success || parsed.data.id === undefined) return { references: [] };
	const { method, id: messageId, params } = parsed.data;
	if (method === undefined) return { response: messageId, references: [] };
	const token = params?._meta?.progressToken;
	return {
		references: [answerReference(messageId), ...(token === undefined ? [] : [progressReference(token)])],
	};
}

const toolList = z.object({
	id,
	result: z.looseObject({ tools: z.array(z.looseObject({ name: z.string() })) }),
});

/** Reads a response to tools/list; `undefined`: it is none. */
export function readToolList(message: unknown): z.infer<typeof toolList> | undefined {
	return toolList.safeParse(message).data;
}
