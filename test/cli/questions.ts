export const server = "https://mcp.example.com";
export const search = `${server}/tools/search`;
export const fetch = `${server}/tools/fetch`;
export const now = 1_796_000_000;

const principal = { iss: "https://as.example.com", sub: "alice", client_id: "app" };

/** The payload of a token, as a verifier hands it on. */
export function payload(aud: string | string[]) {
	return { ...principal, aud, exp: now + 3600, iat: now - 60, jti: "6f1c" };
}

/** The same, as the facts have it. */
export function normalised(...aud: string[]) {
	return { ...principal, aud, scope: [], exp: now + 3600 };
}

const ofSearch = { tool: "search", request_id: 7, aud: [search], scope: [] };
const ofFetch = { tool: "fetch", request_id: 8, aud: [fetch], scope: [] };

/** Events 42 to 47 are of `search`, 48 is of `fetch`. */
export const events = [42, 43, 44, 45, 46, 47, 48].map((id) => ({
	id: String(id),
	...(id < 48 ? ofSearch : ofFetch),
}));

export const folded = {
	count: 7,
	last: "48",
	needs: [
		{ index: 0, event_id: "42", before: "41", ...ofSearch },
		{ index: 6, event_id: "48", before: "47", ...ofFetch },
	],
};

/** Opened under the aggregate, dropped after event 41, resumed with this token. */
export function resume(presented: object, pending: unknown = events) {
	return {
		moment: "resume",
		now,
		request: { method: "GET", transport: "streamable-http", session: "known" },
		session: { binding: payload(server), transport: "streamable-http", opened_at: now - 60 },
		presented,
		cursor: { last_event_id: "41", position: "retained" },
		pending,
	};
}

/** Opened on /sse under one name of the server, used on /mcp with a token for its next name. */
export const rotated = {
	moment: "session",
	now,
	request: { method: "GET", transport: "streamable-http", session: "known" },
	session: { binding: payload("mcp://srv"), transport: "sse", opened_at: now - 60 },
	presented: payload("mcp://srv/v2"),
};

/** One question of each moment, all with a token for the whole server. */
export const moments = {
	session: {
		moment: "session",
		now,
		request: { method: "POST", transport: "streamable-http", session: "none" },
		rpc: "initialize",
		presented: payload(server),
	},
	call: {
		moment: "call",
		now,
		request: { method: "POST", transport: "streamable-http", session: "known", id: "free" },
		session: { binding: payload(server), transport: "streamable-http", opened_at: now - 60 },
		presented: payload(server),
		tool: "search",
	},
	resume: resume(payload(server)),
	delivery: {
		moment: "delivery",
		now,
		request: { method: "GET", transport: "streamable-http", session: "known" },
		session: { binding: payload(server), transport: "streamable-http", opened_at: now - 60 },
		presented: payload(server),
		event: { event_id: "42", ...ofSearch },
	},
};
