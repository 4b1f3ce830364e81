import type { Report, Subject } from "./events.ts";
import type { ToolAnnotations } from "./messages.ts";
import type { Tokens } from "./tokens.ts";

/** What both SDKs take as `fetch`. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** What everything below a client is made from. */
export interface Ground {
	/** The MCP endpoint. */
	readonly url: URL;
	/** To the network. */
	readonly fetch: Fetch;
	readonly tokens: Tokens;
	/** The bound on a recovery, in milliseconds. */
	readonly timeout: number;
	/** Marks the errors that are made here: no server knows it. */
	readonly mark: string;
	readonly report: Report;
	/** Of each tool that the server has listed. */
	readonly annotations: Map<string, ToolAnnotations>;
}

/** The same, for one request: what is reported names it. */
export function about(ground: Ground, { method, tool }: Subject): Ground {
	const subject = { ...(method !== undefined && { method }), ...(tool !== undefined && { tool }) };
	return { ...ground, report: (event) => ground.report({ ...event, ...subject }) };
}
