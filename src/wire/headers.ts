/** Request headers with names in lower case, as Node has them; several of one name joined by a comma. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>;

/** MCP revisions with sessions, newest first. */
const REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/** What a client speaks that does not say (MCP 2025-06-18, Protocol Version Header). */
const UNSAID_REVISION = "2025-03-26";

/** Ids on the wire are visible ASCII (MCP 2025-11-25, Session Management), and none of ours is as long as this. */
const MAX_ID = 256;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** The revision of the request; `undefined`: one that is not spoken here. */
export function protocolVersion(headers: RequestHeaders): string | undefined {
	const version = headers["mcp-protocol-version"];
	if (version === undefined) return UNSAID_REVISION;
	return REVISIONS.includes(version) ? version : undefined;
}

/** From 2025-11-25 on, clients take an event with empty data as a cursor without a message. */
export function takesEmptyEvents(version: string): boolean {
	return version >= "2025-11-25";
}

/** Whether the client takes an SSE stream; MCP asks for the media type by name. */
export function acceptsStream(headers: RequestHeaders): boolean {
	return accepts(headers, "text/event-stream");
}

/** Whether the client takes either form of an answer to a POST, as it must (MCP 2025-11-25, Sending Messages). */
export function acceptsAnswers(headers: RequestHeaders): boolean {
	return accepts(headers, "application/json") && acceptsStream(headers);
}

function accepts({ accept = "" }: RequestHeaders, type: string): boolean {
	return accept.split(",").some((range) => range.split(";")[0]?.trim().toLowerCase() === type);
}

/** The session id; `undefined`: none. One that no server could have issued comes back as it is, to be found unknown. */
export function sessionId(headers: RequestHeaders): string | undefined {
	return headers["mcp-session-id"];
}

/**
 * The session id of HTTP+SSE (MCP 2024-11-05), from the query; `conflict`: a header says otherwise. One request names one
 * session.
 */
export function querySessionId(headers: RequestHeaders, url: URL): { id: string | undefined } | "conflict" {
	const header = sessionId(headers);
	const [id, ...others] = url.searchParams.getAll("sessionId");
	if (others.length > 0 || (id !== undefined && header !== undefined && header !== id)) return "conflict";
	return { id };
}

/** The cursor; `undefined`: none, or an empty one. */
export function lastEventId(headers: RequestHeaders): string | undefined {
	return headers["last-event-id"] || undefined;
}

/** Whether an id of the client's may be looked for at all. */
export function isPlausibleId(id: string): boolean {
	return id.length <= MAX_ID && VISIBLE_ASCII.test(id);
}
