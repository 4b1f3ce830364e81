/** Server-sent events (HTML Living Standard section 9.2), as MCP writes them. JSON text has no line breaks of its own. */

/** A JSON-RPC message. Without an id the client's cursor stays where it is. */
export function messageFrame(message: string, id?: string): string {
	return id === undefined
		? `event: message\ndata: ${message}\n\n`
		: `event: message\nid: ${id}\ndata: ${message}\n\n`;
}

/**
 * Puts the client's cursor to `id` and delivers nothing (MCP 2025-11-25, "priming"). A stream that drops before its
 * first event has otherwise lost the cursor.
 */
export function cursorFrame(id: string): string {
	return `id: ${id}\ndata: \n\n`;
}

/** Where to post (HTTP+SSE, MCP 2024-11-05), with the first cursor. */
export function endpointFrame(endpoint: string, id: string): string {
	return `event: endpoint\nid: ${id}\ndata: ${endpoint}\n\n`;
}

/** How long to wait before the next GET, in milliseconds. */
export function retryFrame(milliseconds: number): string {
	return `retry: ${milliseconds}\n\n`;
}

/** For clients that look for it; others pass over events of a type they do not know. */
export function errorFrame(data: string): string {
	return `event: error\ndata: ${data}\n\n`;
}

/** Nothing, so that idle connections stay open and dead ones are noticed. */
export const keepAliveFrame = ": keepalive\n\n";
