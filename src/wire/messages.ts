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

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads one message of a POST body; `undefined`: it is none, or could be read as more than one kind. What MCP servers do
 * not take is none: nothing would answer it. MCP 2025-11-25 sections Requests, Responses, Notifications, and schema.
 */
export function readMessage(value: unknown): ClientMessage | undefined {
	if (!isObject(value) || value.jsonrpc !== "2.0") return undefined;
	const { method, id, params = {} } = value;
	if (method === undefined) return readResponse(value);
	if (!hasOnly(value, ["jsonrpc", "id", "method", "params"])) return undefined;
	if (typeof method !== "string" || method === "" || !isObject(params) || !isMeta(params._meta))
		return undefined;
	if (!("id" in value)) return readNotification(method, params);
	return isRequestId(id) ? readRequest(method, id, params) : undefined;
}

/** Whether a POST body opens a session, or would. */
export function isInitialize(body: unknown): boolean {
	return [body].flat().some((message) => isObject(message) && message.method === "initialize");
}

/** The revision that an `initialize` asks for; `undefined`: it is none. */
export function revisionAsked(body: unknown): string | undefined {
	const [message] = [body].flat();
	if (!isInitialize(body) || !isObject(message) || !isObject(message.params)) return undefined;
	const { protocolVersion } = message.params;
	return typeof protocolVersion === "string" ? protocolVersion : undefined;
}

function readResponse(value: Fields): ClientMessage | undefined {
	const { id, result, error } = value;
	if (!isRequestId(id)) return undefined;
	const isResult = hasOnly(value, ["jsonrpc", "id", "result"]) && isObject(result) && isMeta(result._meta);
	const isAnswer = isResult || (hasOnly(value, ["jsonrpc", "id", "error"]) && isError(error));
	return isAnswer ? { kind: "answer", reference: answerReference(id) } : undefined;
}

function hasOnly(value: Fields, members: readonly string[]): boolean {
	return Object.keys(value).every((name) => members.includes(name));
}

function isMeta(meta: unknown): boolean {
	if (meta === undefined) return true;
	return isObject(meta) && (meta.progressToken === undefined || isRequestId(meta.progressToken));
}

function isError(error: unknown): boolean {
	return isObject(error) && Number.isSafeInteger(error.code) && typeof error.message === "string";
}

function readRequest(method: string, request_id: RequestId, { name }: Fields): ClientMessage | undefined {
	if (isOfSession(method)) return { kind: "session", rpc: method, request_id };
	if (method !== "tools/call") return { kind: "call", rpc: method, request_id };
	return typeof name === "string" ? { kind: "call", tool: name, request_id } : undefined;
}

function readNotification(method: string, { requestId, progressToken }: Fields): ClientMessage | undefined {
	// A request without an id: some servers would do what it asks for, and tell nobody.
	if (!method.startsWith("notifications/")) return undefined;
	if (method === "notifications/cancelled" && requestId !== undefined) {
		return isRequestId(requestId) ? { kind: "cancel", request_id: requestId } : undefined;
	}
	if (method === "notifications/progress") {
		return isRequestId(progressToken)
			? { kind: "progress", reference: progressReference(progressToken) }
			: undefined;
	}
	return { kind: "notification", rpc: method };
}

function isObject(value: unknown): value is Fields {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isRequestId(value: unknown): value is RequestId {
	return typeof value === "string" || Number.isSafeInteger(value);
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

/** A message of the server's, as far as it matters to the log. */
export interface ServerMessage {
	/** The call that it is the response to. */
	readonly response?: RequestId;
	/** Names under which the client may refer to it: it is a request. */
	readonly references: readonly string[];
}

/** Reads what the MCP server emits. Only a response names its request by `id`. */
export function readEmitted(message: unknown): ServerMessage {
	if (!isObject(message) || !isRequestId(message.id)) return { references: [] };
	const { method, id, params } = message;
	if (method === undefined) return { response: id, references: [] };
	const meta = isObject(params) ? params._meta : undefined;
	const token = isObject(meta) ? meta.progressToken : undefined;
	return { references: [answerReference(id), ...(isRequestId(token) ? [progressReference(token)] : [])] };
}

/** Whether a message of the server's that names no call may still tell of one: a question to the client, a log line. */
export function tellsOfCall(message: unknown): boolean {
	if (!isObject(message)) return false;
	return (
		message.method === "notifications/message" ||
		(isRequestId(message.id) && typeof message.method === "string")
	);
}

/** Whether a message primes a stream (MCP 2025-11-25) and is none. */
export function isPriming(message: unknown): boolean {
	return isObject(message) && Object.keys(message).length === 0;
}

/** A response to tools/list. */
export interface ToolList {
	readonly id: RequestId;
	readonly result: Fields & { readonly tools: readonly { readonly name: string }[] };
}

/** Whether a message is a response to tools/list, by its shape. */
export function isToolList(message: unknown): message is ToolList {
	if (!isObject(message) || !isRequestId(message.id) || !isObject(message.result)) return false;
	const { tools } = message.result;
	return Array.isArray(tools) && tools.every((tool) => isObject(tool) && typeof tool.name === "string");
}
