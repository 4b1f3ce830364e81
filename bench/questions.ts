import type { EventInput, ResumeQuestion, SessionQuestion } from "mcp-resume-guard";

const server = "https://mcp.example.com";
const search = `${server}/tools/search`;
const fetch = `${server}/tools/fetch`;
const now = 1_796_000_000;

/** The payload of an access token (RFC 9068), as a verifier hands it on. */
function claims(aud: string, iat: number) {
	return {
		iss: "https://as.example.com",
		sub: "0c2d7a5e-3b0f-4a0c-9d0a-5f6f2f6b8a11",
		client_id: "https://client.example.com/metadata.json",
		aud,
		scope: "tools:call tools:read",
		iat,
		exp: iat + 3600,
		jti: "8f14e45f-ceea-467f-a0e6-1f2d3c4b5a69",
	};
}

/** The tokens of story 1: for `search` alone, or for the aggregate that covers both tools. */
export const TOKENS = ["narrow", "wide"] as const;

export type Token = (typeof TOKENS)[number];

const presented = { narrow: claims(search, now - 10), wide: claims(server, now - 10) };
const session = {
	binding: claims(server, now - 3000),
	transport: "streamable-http",
	opened_at: now - 3000,
} as const;

/** A message about the session itself, under one token or the other. */
export function listTools(token: Token): SessionQuestion {
	return {
		now,
		request: { method: "POST", transport: "streamable-http", session: "known" },
		rpc: "tools/list",
		session,
		presented: presented[token],
	};
}

/** The GET of story 1: dropped after event 41, resumed while `fetch` is still running. */
export function resume(token: Token, pending: NonNullable<ResumeQuestion["pending"]>): ResumeQuestion {
	return {
		now,
		request: { method: "GET", transport: "streamable-http", session: "known" },
		session,
		presented: presented[token],
		cursor: { last_event_id: "41", position: "retained" },
		pending,
		open: [{ tool: "fetch", request_id: 8, aud: [fetch], scope: [] }],
	};
}

type Labelled = Omit<EventInput, "id">;

const ofSearch = (): Labelled => ({ tool: "search", request_id: 7, aud: [search], scope: [] });
const ofFetch = (): Labelled => ({ tool: "fetch", request_id: 8, aud: [fetch], scope: [] });
const ofRead = (): Labelled => ({ rpc: "resources/read", request_id: 9, aud: [server], scope: [] });
const ofSession = (): Labelled => ({ aud: [], scope: [] });

/** The events of story 1: 42 to 47 are of `search`, 48 is of `fetch`. */
export function storyEvents(): EventInput[] {
	return Array.from({ length: 7 }, (_, index) => ({
		id: String(42 + index),
		...(index < 6 ? ofSearch() : ofFetch()),
	}));
}

/** Four labels that alternate, the dearest buffer to fold. No two events share an array. */
export function manyEvents(count: number): EventInput[] {
	const labels = [ofSearch, ofRead, ofSession, ofFetch];
	return Array.from({ length: count }, (_, index) => ({
		id: String(42 + index),
		...(labels[index % labels.length] ?? ofSession)(),
	}));
}
