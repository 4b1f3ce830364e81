import type { Call, Holder } from "../events/log.ts";
import type { Label, RequestId } from "../generated/types.ts";
import type { SessionKey } from "../sessions/store.ts";
import { createDeliver, type Deliver, millisecondsToExpiry } from "./delivery.ts";
import { type Found, type Ground, getStreamOf, randomName } from "./ground.ts";
import { createShow, type Show } from "./show.ts";

/** The response to a POST, which the MCP server writes. */
export interface ServerResponse {
	/** Whether bytes that are written now may still reach the client. */
	isOpen(): boolean;
	/** No clean end: the client sees a broken connection. What is written later reaches nobody. */
	cut(): void;
	/** Writes text and ends cleanly. */
	finish(text: string): void;
	/** Calls back once, when the connection is closed, by whichever side. */
	onClose(listener: () => void): void;
}

/** A POST whose calls run on this machine. */
export interface LivePost {
	/** The event log's name of its stream. */
	readonly stream: string;
	readonly calls: readonly Call[];
	/** Who the connection is, as the holder of the stream. */
	readonly holder: Holder;
	/** Decides what may go out on the POST's own response, under its own token. */
	readonly deliver: Deliver;
	/** What its response may show, under its own token. */
	readonly show: Show;
	/** `undefined` until the host has given it. */
	response: ServerResponse | undefined;
	/** Whether anything has been emitted for it. */
	hasEmitted: boolean;
	/** Whether an SSE id has gone out on the response: the client has a cursor. */
	hasCursor: boolean;
}

/** A server transport of the guard's own, which takes what a client posts. */
export interface OwnTransport {
	receive(message: unknown): void;
}

/** What this machine runs of a session. */
export interface LiveSession {
	readonly key: SessionKey;
	readonly id: string;
	/** The event log's name of the session's own GET stream. */
	readonly getStream: string;
	/** Posts whose calls are not all answered. */
	readonly posts: Set<LivePost>;
	/** The union of all calls so far: what cannot be attributed to any of them needs all that they needed. */
	everything: Label;
	/** The guard's own transport, if that is what the session runs on. */
	own: OwnTransport | undefined;
	/** Closes what the host runs for the session. */
	close: (() => Promise<void> | void) | undefined;
}

/** The sessions that this machine runs. */
export interface LiveSessions {
	/** The session, made if it is not there yet: after its `initialize`, or on another machine. */
	of(key: SessionKey, id: string): LiveSession;
	get(key: SessionKey): LiveSession | undefined;
	/** Stops everything; the sessions themselves stay. */
	close(): Promise<void>;
}

export function createLiveSessions(ground: Ground): LiveSessions {
	const live = new Map<SessionKey, LiveSession>();

	async function stop(session: LiveSession): Promise<void> {
		live.delete(session.key);
		for (const post of session.posts) post.response?.cut();
		session.posts.clear();
		await session.close?.();
	}

	const stopListening = ground.sessions.onEnd((key) => {
		const session = live.get(key);
		// A session also ends where nobody asked (idle for too long), and its events go with it.
		void ground.events.drop(key);
		if (session !== undefined) void Promise.resolve(stop(session)).catch(() => undefined);
	});

	return {
		of(key, id) {
			const known = live.get(key);
			if (known !== undefined) return known;
			const session: LiveSession = {
				key,
				id,
				getStream: getStreamOf(key),
				posts: new Set(),
				everything: { aud: [], scope: [] },
				own: undefined,
				close: undefined,
			};
			live.set(key, session);
			return session;
		},
		get: (key) => live.get(key),
		async close() {
			stopListening();
			await Promise.all([...live.values()].map(stop));
		},
	};
}

/** A POST that has been admitted, with its calls in the event log. */
export function createPost(
	ground: Ground,
	found: Found,
	stream: string,
	calls: readonly Call[],
	lists: ReadonlySet<RequestId> = new Set(),
): LivePost {
	return {
		stream,
		show: lists.size === 0 ? (message) => message : createShow(ground, found, lists),
		calls,
		holder: randomName(),
		deliver: createDeliver(ground, found),
		response: undefined,
		hasEmitted: false,
		hasCursor: false,
	};
}

/**
 * Ties a POST to its response: the connection holds the stream until it is closed, a resume takes it over, or the token
 * has expired.
 */
export async function serve(
	ground: Ground,
	found: Found,
	session: LiveSession,
	post: LivePost,
	response: ServerResponse,
): Promise<void> {
	const { events } = ground;
	const { key } = session;
	await events.hold(key, post.stream, post.holder);
	const unwatch = events.watch(key, post.stream, async () => {
		if ((await events.holder(key, post.stream)) !== post.holder) response.cut();
	});
	const expiry = millisecondsToExpiry(ground, found);
	const timer =
		expiry === undefined ? undefined : setTimeout(() => response.cut(), Math.min(expiry, 2 ** 31 - 1));
	response.onClose(() => {
		clearTimeout(timer);
		unwatch();
		void events.release(key, post.stream, post.holder);
	});
	post.response = response;
}

/** The needs of several labels together. */
export function unionOf(labels: readonly Label[]): Label {
	return {
		aud: [...new Set(labels.flatMap(({ aud }) => aud))].sort(),
		scope: [...new Set(labels.flatMap(({ scope }) => scope))].sort(),
	};
}

/** The POST that a call, still open, came with. */
export function postOf({ posts }: LiveSession, id: RequestId): LivePost | undefined {
	for (const post of posts) if (post.calls.some(({ request_id }) => request_id === id)) return post;
	return undefined;
}
