import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { EventStore } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { type FastMCPSession, UserError } from "fastmcp";
import { LRUCache } from "lru-cache";
import {
	type Binding,
	type Claims,
	createMemoryEventLog,
	createMemorySessionStore,
	createResumeGuard,
	createTokenVerifier,
	type Label,
	type PolicyData,
	type RequestId,
	type ResumeDecision,
	ResumeGuardError,
	type SessionDecision,
	type SessionInput,
	type TokenVerifierOptions,
	tokenCredentials,
} from "mcp-resume-guard";

/** For a FastMCP server: hand `authenticate`, `onToolCall` and `eventStore` to it, and its `connect` events to `onConnect`. */
export interface Gate {
	authenticate(request: IncomingMessage): Promise<{ claims: Claims }>;
	onConnect(event: { session: Pick<FastMCPSession, "sessionId"> }): void;
	onToolCall(call: { toolName: string }): void;
	readonly eventStore: EventStore;
}

/** A request, for what runs in its name. */
interface At {
	readonly claims: Claims;
	readonly socket: Socket;
	key: string | undefined;
	session: SessionInput | undefined;
	/** The session that an `initialize` opens. */
	opening?: Pick<FastMCPSession, "sessionId">;
	/** The tools that it has called, and how many of them have answered. */
	readonly calls: Label[];
	answers: number;
	/** A resume: the stream that goes on. */
	stream?: string;
	/** A stream that has been resumed: by whom. */
	holder?: At;
}

const SESSION_NOT_FOUND = { code: -32001, message: "Session not found" };
/** How many events are read at a time. */
const STRETCH = 64;

/**
 * The guard inside of a host that asks `authenticate` about each request and has one event store for all sessions. It is
 * less than the guard around a host: see docs/hosts.md.
 *
 * @param metadata the URL of the protected-resource metadata, for challenges
 */
export async function createGate(
	data: PolicyData,
	tokens: TokenVerifierOptions,
	metadata: string,
): Promise<Gate> {
	const guard = await createResumeGuard({ data });
	// The transport replays all there is.
	if (guard.data.replay !== "atomic") throw new TypeError('`replay` must be "atomic"');
	const verify = createTokenVerifier(tokens, guard.data);
	const sessions = createMemorySessionStore();
	const events = createMemoryEventLog();
	const current = new AsyncLocalStorage<Partial<At>>();
	/** By the transport's name of the stream. */
	const posts = new LRUCache<string, At>({ max: 10_000 });
	/** The connections of each session, and when their tokens expire. */
	const connections = new Map<string, Map<Socket, NodeJS.Timeout>>();

	sessions.onEnd((key) => {
		void events.drop(key);
		for (const socket of connections.get(key)?.keys() ?? []) socket.destroy();
	});

	function connect(key: string, socket: Socket, exp: unknown): void {
		const known = connections.get(key) ?? new Map();
		connections.set(key, known);
		clearTimeout(known.get(socket));
		if (!known.has(socket)) {
			socket.once("close", () => {
				clearTimeout(known.get(socket));
				known.delete(socket);
				if (known.size === 0) connections.delete(key);
			});
		}
		const left = (Number(exp) + guard.data.clock_skew) * 1000 - Date.now();
		known.set(socket, setTimeout(() => socket.destroy(), Math.min(left, 2 ** 31 - 1)).unref());
	}

	async function end({ key, socket }: At): Promise<void> {
		if (key === undefined) return;
		// Its own connection has an answer to come.
		clearTimeout(connections.get(key)?.get(socket));
		connections.get(key)?.delete(socket);
		await sessions.end(key);
	}

	async function verified({ headers, method = "", url = "" }: IncomingMessage): Promise<Claims> {
		try {
			const credentials = tokenCredentials([headers.authorization ?? []].flat());
			if (credentials === undefined) throw new Error("no token");
			const { token, scheme } = credentials;
			return await verify(token, { method, url: `http://${headers.host}${url}`, headers, scheme });
		} catch (error) {
			const isDown = error instanceof ResumeGuardError && error.code === "token_keys_unavailable";
			const headers = { "www-authenticate": `Bearer resource_metadata="${metadata}"` };
			const { message } = error as Error;
			throw Response.json(rpcError({ code: -32043, message }), { status: isDown ? 503 : 401, headers });
		}
	}

	async function decide(request: IncomingMessage, at: At): Promise<Response | undefined> {
		const method = request.method as "GET" | "POST" | "DELETE";
		const named = request.headers["mcp-session-id"] !== undefined;
		const facts = factsOf(at, method, named ? "unknown" : "none");
		const cursor = request.headers["last-event-id"];
		if (method !== "GET" || typeof cursor !== "string") {
			// Its body is not to be seen here. The host refuses a POST without a session that is no `initialize`.
			const decision = guard.session(method === "POST" && !named ? { ...facts, rpc: "initialize" } : facts);
			const ends = decision.outcome === "proceed" ? method === "DELETE" : decision.session === "end";
			if (ends) await end(at);
			return decision.outcome === "proceed" ? undefined : refusal(decision);
		}

		const located =
			at.key === undefined || at.session === undefined
				? ({ position: "unknown" } as const)
				: await events.locate(at.key, cursor);
		const stream = "stream" in located ? located.stream : undefined;
		const post = posts.get(stream ?? "");
		// Of a stream that has been forgotten here, nobody knows what still runs.
		const isThere = located.position === "retained" && post !== undefined;
		const position = located.position === "retained" && !isThere ? "evicted" : located.position;
		const pending = isThere ? located.pending : [];
		const decision = guard.resume({
			...facts,
			cursor: { last_event_id: cursor, position },
			pending: pending.map(({ id, label }) => ({ id, ...label })),
			open: post === undefined || post.answers >= post.calls.length ? [] : post.calls,
		});
		if (decision.outcome === "proceed" && stream !== undefined) {
			at.stream = stream;
			return undefined;
		}
		if (decision.session === "end") await end(at);
		const waiting = pending.flatMap(({ request_id }) => (request_id === undefined ? [] : [request_id]));
		if (decision.outcome === "reauthorize" && stream !== undefined && waiting.length > 0) {
			const asked = JSON.stringify([at.claims.aud, at.claims.scope, decision.required]);
			const repeated = await sessions.repeated(at.key ?? "", stream, asked, 60);
			if (repeated) return failCalls(decision, waiting);
		}
		return refusal(decision);
	}

	function refusal(decision: SessionDecision | ResumeDecision): Response {
		const { outcome, code, status, session } = decision;
		if (code === "session_unknown" || (code === "principal_drift" && session === "keep")) {
			return Response.json(rpcError(SESSION_NOT_FOUND), { status });
		}
		if (code === "principal_drift") {
			return Response.json(rpcError({ code: -32043, message: "Forbidden" }), { status });
		}
		const challenge = `Bearer error="insufficient_scope", resource_metadata="${metadata}"`;
		const headers = { ...(outcome === "reauthorize" && { "www-authenticate": challenge }) };
		return Response.json(rpcError(errorOf(decision)), { status, headers });
	}

	/** The session that an `initialize` has opened, once its transport has named it. */
	async function opened(at: At): Promise<void> {
		const id = at.opening?.sessionId;
		if (at.key !== undefined || id === undefined) return;
		const record = {
			key: keyOf(id),
			binding: at.claims as Binding,
			transport: "streamable-http",
			opened_at: Date.now() / 1000,
		} as const;
		if ((await sessions.open(record)) !== "opened") throw new Error("too many sessions");
		const { iss, sub, client_id } = record.binding;
		await events.open(record.key, JSON.stringify([iss, sub, client_id]));
		at.key = record.key;
	}

	return {
		async authenticate(request) {
			const at: Partial<At> = {};
			// Before the first await, so that it holds for what the host does afterwards.
			current.enterWith(at);
			// fastmcp also serves /sse, whose messages nobody is asked about.
			if (!request.url?.startsWith("/mcp")) throw new Response(null, { status: 404 });
			if (request.headers.origin !== undefined) throw new Response(null, { status: 403 });
			const claims = await verified(request);
			const id = request.headers["mcp-session-id"];
			const key = typeof id === "string" ? keyOf(id) : undefined;
			const record = key === undefined ? undefined : await sessions.find(key);
			const { socket } = request;
			const complete: At = Object.assign(at, { claims, socket, key, session: record, calls: [], answers: 0 });
			const refused = await decide(request, complete);
			if (refused !== undefined) throw refused;
			if (key !== undefined) connect(key, socket, claims.exp);
			return { claims };
		},

		onConnect({ session }) {
			const at = current.getStore();
			if (at !== undefined) at.opening = session;
		},

		onToolCall({ toolName }) {
			const at = current.getStore();
			const decision = guard.call({ ...factsOf(at, "POST", "unknown"), tool: toolName });
			// The tool's error, since its response has begun.
			if (decision.outcome !== "proceed") throw new UserError(errorOf(decision).message, { ...decision });
			at?.calls?.push(decision.label);
		},

		eventStore: {
			async storeEvent(stream, message) {
				const at = posts.get(stream) ?? (current.getStore() as At | undefined);
				if (at === undefined) return NO_ID;
				await opened(at);
				// Without a priming event it cannot be told whose stream it is, and the session's own has one name in all.
				if (isPriming(message)) posts.set(stream, at);
				if (at.key === undefined || !posts.has(stream)) return NO_ID;
				if (isPriming(message)) return events.start(at.key, stream);
				const answered = "id" in message && !("method" in message) ? message.id : undefined;
				if (answered !== undefined) at.answers += 1;
				const label = labelOf(at);
				const id = await events.append(at.key, stream, {
					message: JSON.stringify(message),
					label,
					...(answered !== undefined && { request_id: answered }),
				});
				await events.markWritten(at.key, id);
				// The transport writes it to whoever holds the stream.
				const { holder } = at;
				const event = { event_id: id, ...label };
				const decision = holder && guard.delivery({ ...factsOf(holder, "GET", "unknown"), event });
				if (decision !== undefined && decision.outcome !== "proceed") holder?.socket.destroy();
				return id;
			},

			async replayEventsAfter(lastEventId, { send }) {
				const at = current.getStore() as At | undefined;
				const { key, stream = "" } = at ?? {};
				const post = posts.get(stream);
				if (key === undefined || post === undefined) throw new Error("a resume that nobody has decided");
				if (at !== undefined) post.holder = at;
				let after = lastEventId;
				for (;;) {
					const stretch = await events.read(key, stream, after, STRETCH);
					if (stretch.evicted) throw new Error("events are gone");
					for (const { id, message } of stretch.events) {
						await send(id, JSON.parse(message));
						after = id;
					}
					if (stretch.events.length === 0) return stream;
				}
			},
		},
	};
}

/** Events without an id are not resumed from. */
const NO_ID = "";

function isPriming(message: object): boolean {
	return Object.keys(message).length === 0;
}

function keyOf(id: string): string {
	return createHash("sha256").update(id).digest("base64url");
}

/** What the guard is asked with; `otherwise` is how the session is named where it is not known. */
function factsOf(
	at: Partial<At> | undefined,
	method: "GET" | "POST" | "DELETE",
	otherwise: "unknown" | "none",
) {
	const { session, claims } = at ?? {};
	return {
		request: {
			method,
			transport: "streamable-http",
			session: session === undefined ? otherwise : "known",
		},
		...(session !== undefined && { session }),
		...(claims !== undefined && { presented: claims }),
	} as const;
}

/** Of several calls on one stream, nobody can tell whose an event is: it needs what all of them need. */
function labelOf({ calls }: At): Label {
	const [only, ...others] = calls;
	if (only !== undefined && others.length === 0) return only;
	const union = (needs: (label: Label) => readonly string[]) => [...new Set(calls.flatMap(needs))];
	return { aud: union(({ aud }) => aud), scope: union(({ scope }) => scope) };
}

function errorOf(decision: { outcome: string; code: string }) {
	return { code: -32043, message: `${decision.outcome}: ${decision.code}`, data: decision };
}

function rpcError(error: object): object {
	return { jsonrpc: "2.0", error, id: null };
}

/** For each call that waits, without ids: the client keeps its cursor. */
function failCalls(decision: ResumeDecision, waiting: readonly RequestId[]): Response {
	const errors = waiting.map((id) => ({ jsonrpc: "2.0", id, error: errorOf(decision) }));
	const frames = errors.map((error) => `event: message\ndata: ${JSON.stringify(error)}\n\n`).join("");
	return new Response(frames, { headers: { "content-type": "text/event-stream" } });
}
