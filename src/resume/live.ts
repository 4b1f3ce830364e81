import type { Claims } from "../claims.ts";
import type { Call, Holder } from "../events/log.ts";
import type { Label, RequestId } from "../generated/types.ts";
import type { SessionKey } from "../sessions/store.ts";
import { failedFrames, type Refused } from "../wire/refusal.ts";
import { type Covered, createCovered, createDeliver, type Deliver, decideAgain } from "./delivery.ts";
import { atExpiry } from "./expiry.ts";
import { type Found, type Ground, getStreamOf, inBackground, newName } from "./ground.ts";
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
	/** Ids of the calls that have neither a response nor been cancelled. */
	readonly waiting: Set<RequestId>;
	/** Who the connection is, as the holder of the stream. */
	readonly holder: Holder;
	/** Decides what may go out on the POST's own response, under its own token. */
	readonly deliver: Deliver;
	/** What its response may show, under its own token. */
	readonly show: Show;
	/** What the MCP server writes; `undefined` until the host has given it, and on the guard's own transport. */
	response: ServerResponse | undefined;
	/** Breaks its response off, whoever writes it. */
	cut: (() => void) | undefined;
	/** An event of its own is being handed to the event log. */
	isAppending: boolean;
	/** Whether anything has been emitted for it. */
	hasEmitted: boolean;
	/** Whether an SSE id has gone out on the response: the client has a cursor. */
	hasCursor: boolean;
}

/** What a message came with, as the MCP server is told it (`MessageExtraInfo` of the SDKs). */
export type MessageExtra = object;

/** A server transport of the guard's own, which takes what a client posts. */
export interface OwnTransport {
	/** `post`: what the message came in, if it has calls. */
	receive(message: unknown, post: LivePost | undefined, extra: MessageExtra): void;
	/** Whether the server has answered its first request, `initialize`, with an error. */
	readonly hasFailed: boolean;
}

/** What this machine runs of a session. */
export interface LiveSession {
	readonly key: SessionKey;
	readonly id: string;
	/** The event log's name of the session's own GET stream. */
	readonly getStream: string;
	/** Posts whose calls are not all answered. */
	readonly posts: Set<LivePost>;
	/** What finished posts have needed, by `typeof` and value of the request id: an id may be given again. */
	readonly finished: Map<string, Label>;
	/** The union of all calls so far: what cannot be attributed to any of them needs all that they needed. */
	everything: Label;
	/** One object for each label, so that what is known of a label is found by the object. */
	readonly labels: Map<string, Label>;
	/** What has been decided about each label, for each token. */
	readonly covered: Map<string, Covered>;
	/** The guard's own transport, if that is what the session runs on. */
	own: OwnTransport | undefined;
	/** Closes what the host runs for the session. */
	close: (() => Promise<void> | void) | undefined;
}

/** The sessions that this machine runs. */
export interface LiveSessions {
	/** The session, made if it is not there yet: after its `initialize`, or on another machine. */
	of(key: SessionKey, id: string): LiveSession;
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
		inBackground(ground, ground.events.drop(key));
		if (session !== undefined) inBackground(ground, stop(session));
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
				labels: new Map(),
				covered: new Map(),
				finished: new Map(),
				everything: { aud: [], scope: [] },
				own: undefined,
				close: undefined,
			};
			live.set(key, session);
			return session;
		},
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
	{ lists = new Set(), covered }: { lists?: ReadonlySet<RequestId>; covered?: Covered } = {},
): LivePost {
	return {
		stream,
		show: lists.size === 0 ? (message) => message : createShow(ground, found, lists),
		calls,
		waiting: new Set(calls.map(({ request_id }) => request_id)),
		holder: newName(),
		deliver: createDeliver(ground, found, covered),
		response: undefined,
		cut: undefined,
		isAppending: false,
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
	post.response = response;
	post.cut = response.cut;
	await events.hold(key, post.stream, post.holder);
	const cutIfTaken = () =>
		events.holder(key, post.stream).then(
			(holder) => holder !== post.holder && response.cut(),
			() => response.cut(),
		);
	const unwatch = events.watch(key, post.stream, () => {
		// What is appended for the POST is not written before it has been looked at who holds the stream.
		if (!post.isAppending) void cutIfTaken();
	});
	const cancelExpiry = atExpiry(ground, found, () => {
		const decision = ground.guard.session(found.facts);
		if (decision.outcome === "proceed") response.cut();
		else breakOff(post, decision);
	});
	const look = () => {
		const refused = decideAgain(ground, found);
		if (refused !== undefined) breakOff(post, refused);
	};
	const stopListening = ground.guard.onRevision(look);
	if (found.revision !== ground.guard.revision) look();
	response.onClose(() => {
		cancelExpiry();
		stopListening();
		unwatch();
		inBackground(ground, events.release(key, post.stream, post.holder));
	});
}

/**
 * Ends a response on which nothing more may go out: it is cut, and the client comes back with its cursor. One that never
 * had a cursor cannot come back, so its calls are told.
 */
export function breakOff({ response, hasCursor, calls }: LivePost, decision: Refused): void {
	const ids = calls.map(({ request_id }) => request_id);
	if (hasCursor) response?.cut();
	else response?.finish(failedFrames(decision, ids));
}

/** The needs of several labels together. */
export function unionOf(labels: readonly Label[]): Label {
	return {
		aud: [...new Set(labels.flatMap(({ aud }) => aud))].sort(),
		scope: [...new Set(labels.flatMap(({ scope }) => scope))].sort(),
	};
}

/** The needs themselves, if they have all that the label needs. */
export function withNeeds(needs: Label, label: Label): Label {
	const has = (member: "aud" | "scope") => label[member].every((value) => needs[member].includes(value));
	return has("aud") && has("scope") ? needs : unionOf([needs, label]);
}

/** The newest POST with a call of that id whose calls are not all answered: where the MCP server's answer leads. */
export function postOf({ posts }: LiveSession, id: RequestId): LivePost | undefined {
	let newest: LivePost | undefined;
	for (const post of posts) if (post.calls.some(({ request_id }) => request_id === id)) newest = post;
	return newest;
}

/** Tokens and labels that a session remembers decisions about; it forgets all of them, and asks again. */
const REMEMBERED = 1_000;

/** The session's own object for a label. */
export function internLabel({ labels }: LiveSession, label: Label): Label {
	const { tool, rpc, aud, scope } = label;
	return remembered(labels, JSON.stringify([tool, rpc, aud, scope]), () => label);
}

/** What has been decided in the session about each label, for a token of these claims. */
export function coveredBy(ground: Ground, { covered }: LiveSession, presented: Claims | undefined): Covered {
	return remembered(covered, JSON.stringify(presented) ?? "", () => createCovered(ground));
}

function remembered<T>(known: Map<string, T>, key: string, make: () => T): T {
	const found = known.get(key);
	if (found !== undefined) return found;
	if (known.size >= REMEMBERED) known.clear();
	const made = make();
	known.set(key, made);
	return made;
}
