import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { RequestId } from "../generated/types.ts";
import { emit } from "../resume/emit.ts";
import { foundOf, type Ground, newName } from "../resume/ground.ts";
import { createPost, type LivePost, type LiveSession, postOf } from "../resume/live.ts";
import { readEmitted } from "../wire/messages.ts";

/** The `EventStore` of the MCP TypeScript SDKs (v1 `@modelcontextprotocol/sdk`, v2 `@modelcontextprotocol/server`). */
export interface SdkEventStore {
	storeEvent(streamId: string, message: object): Promise<string>;
	replayEventsAfter(
		lastEventId: string,
		options: { send: (eventId: string, message: never) => Promise<void> },
	): Promise<string>;
}

/** `AuthInfo` of the SDKs. */
export interface AuthInfo {
	token: string;
	clientId: string;
	scopes: string[];
	/** NumericDate, seconds. */
	expiresAt?: number;
	extra?: Record<string, unknown>;
}

/** What is needed of a server transport of the SDKs. */
export interface SdkTransport {
	send(message: never, options?: { relatedRequestId?: RequestId | undefined }): Promise<void>;
	close(): Promise<void>;
}

/** A server transport of the SDKs for node:http. */
export interface NodeTransport extends SdkTransport {
	handleRequest(request: IncomingMessage, response: ServerResponse, body?: unknown): Promise<void>;
}

/** A server transport of the SDKs for fetch. */
export interface WebTransport extends SdkTransport {
	handleRequest(
		request: Request,
		options?: { parsedBody?: unknown; authInfo?: AuthInfo | undefined },
	): Promise<Response>;
}

/** What runs now: the POST that it came with, and the call whose message is being sent. */
interface Running {
	readonly post?: LivePost | undefined;
	readonly call?: RequestId | undefined;
}

const running = new AsyncLocalStorage<Running>();

/** The name that both SDKs give to the stream of every session's own GET. */
const GET_STREAM = "_GET_stream";
/** Streams of the SDK's that a session remembers; one that is forgotten is taken for one that cannot be attributed. */
const MAX_STREAMS = 10_000;

/** Runs what handles a POST, so that what it emits can be attributed to it. */
export function runPost<T>(post: LivePost | undefined, handle: () => T): T {
	return running.run({ post }, handle);
}

/** The POST in whose asynchronous context this is run. */
export function currentPost(): LivePost | undefined {
	return running.getStore()?.post;
}

/**
 * Makes each message that the transport sends carry the call that it is for, also where the asynchronous context has
 * been lost or is another call's (a batching loader, an emitter), and show no more than it may.
 */
export function attributeSends(transport: SdkTransport, session: LiveSession): void {
	const send = transport.send.bind(transport);
	transport.send = (message, options) => {
		const { response } = readEmitted(message);
		const post = response === undefined ? undefined : postOf(session, response);
		const shown = post === undefined ? message : post.show(message);
		return running.run({ ...running.getStore(), call: options?.relatedRequestId }, () =>
			send(shown, options),
		);
	};
}

/**
 * The event store of one session, for its transport. The guard serves resumes itself, so the transport only appends:
 * `replayEventsAfter` is never called behind the guard, and rejects.
 */
export function createEventStore(ground: Ground, session: LiveSession): SdkEventStore {
	const posts = new Map<string, LivePost>();

	function postOfStream(streamId: string, message: object): LivePost {
		const known = posts.get(streamId);
		if (known !== undefined) return known;
		const post = attribute(session, message, [...posts.values()]) ?? unattributed(ground);
		posts.set(streamId, post);
		for (const oldest of posts.keys()) {
			if (posts.size <= MAX_STREAMS) break;
			posts.delete(oldest);
		}
		return post;
	}

	return {
		async storeEvent(streamId, message) {
			const { call, post: context } = running.getStore() ?? {};
			if (streamId === GET_STREAM) return emit(ground, session, { message, post: undefined, context });
			const post = postOfStream(streamId, message);
			const id = await emit(ground, session, { message, post, call, context });
			if (post.calls.length > 0 && !session.posts.has(post)) posts.delete(streamId);
			return id;
		},
		async replayEventsAfter() {
			throw new Error("resumes are served by mcp-resume-guard, not by the transport");
		},
	};
}

// The POST of a stream that is seen for the first time. A context that contradicts what is known is not believed.
function attribute(session: LiveSession, message: object, taken: readonly LivePost[]): LivePost | undefined {
	const { post, call } = running.getStore() ?? {};
	const answered = readEmitted(message).response ?? call;
	const candidate = answered === undefined ? post : postOf(session, answered);
	return candidate === undefined || taken.includes(candidate) ? undefined : candidate;
}

// A stream of its own, whose events need what all calls of the session have needed.
function unattributed(ground: Ground): LivePost {
	const request = { method: "POST", transport: "streamable-http", session: "none" } as const;
	const found = foundOf(ground, request, undefined, undefined, undefined);
	return createPost(ground, found, newName(), []);
}
