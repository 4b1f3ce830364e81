import type { Label, RequestId } from "../generated/types.ts";
import type { SessionKey } from "../sessions/store.ts";

/** A call that a stream was opened for. */
export interface Call {
	/** JSON-RPC id, type and all: `1` and `"1"` are two calls. */
	readonly request_id: RequestId;
	readonly label: Label;
}

/**
 * `calls`: nothing more comes when the calls that the stream was opened for are answered. `lasting`: it goes on for as
 * long as the session does, whatever calls it carries (the stream of HTTP+SSE, MCP 2024-11-05).
 */
export type StreamKind = "calls" | "lasting";

/** What a caller appends. */
export interface NewEvent {
	/** The JSON-RPC message as JSON text. */
	readonly message: string;
	readonly label: Label;
	/** The call that this event belongs to, where it is known. */
	readonly request_id?: RequestId;
	/** This event is the response to the call `request_id`: nothing comes for that call after it. */
	readonly terminal?: boolean;
	/** Names under which a later message of the client may refer to this event (a server's request: its id, its progress token). */
	readonly references?: readonly string[];
}

/** An event without its payload: all that a decision needs. */
export interface EventHeader {
	/** Opaque to everyone else: `<stream>.<epoch>.<n>`, ordered by `n` within its stream. */
	readonly id: string;
	readonly label: Label;
	readonly request_id?: RequestId;
}

export interface StoredEvent extends EventHeader {
	readonly message: string;
}

/** A stretch of a stream. */
export interface Stretch {
	readonly events: readonly StoredEvent[];
	/** An event between the place asked for and the first of `events` is gone, or the session is. */
	readonly evicted: boolean;
	/** Nothing more can come on this stream after `events`: it was opened for calls, and each has its response or was cancelled. */
	readonly finished: boolean;
}

/** Where a `Last-Event-ID` stands (design: cursor positions), with what a decision needs of its stream. */
export type Location =
	| {
			readonly position: "retained";
			readonly stream: string;
			/** Events after the cursor, in order. */
			readonly pending: readonly EventHeader[];
			/** Calls of the stream whose response has not been appended. */
			readonly open: readonly Call[];
	  }
	| {
			/** An event after the cursor is gone; or the id is of an earlier epoch, or of a stream that has been forgotten. */
			readonly position: "evicted";
			readonly stream: string;
			/** Calls whose response the client cannot have: still open, or their response is (or was) after the cursor. */
			readonly waiting: readonly RequestId[];
	  }
	/** `ahead`: never issued or never written. `foreign`: another session's. `unknown`: no such id. */
	| { readonly position: "ahead" | "foreign" | "unknown" };

/** Who may write a stream: one connection at a time. */
export type Holder = string;

/**
 * The event log: what was emitted in each session, in order, until the client is known to have it.
 * Asynchronous, so that a store that several machines share can stand behind it.
 *
 * Streams are named by the caller, opaquely, and located only within their session. Limits are by count,
 * bytes and age, in all and per principal. Under pressure acknowledged events go first, then finished and
 * written streams, oldest first; a principal over its quota is refused new work (`quota`) or loses events of
 * its own. An unacknowledged event that has to go is remembered: a cursor before it is `evicted`.
 *
 * In a session that was never opened, or has ended, `append` and `openStream` reject with `session_ended`;
 * everything else finds nothing and does nothing. An id that was not issued in the session marks and
 * acknowledges nothing.
 */
export interface EventLog {
	/** Makes room for a session; `principal` is who pays for its events. A session that was dropped stays so. */
	open(session: SessionKey, principal: string): Promise<void>;
	/** Drops a session's streams and events. Later appends are refused with `session_ended`. */
	drop(session: SessionKey): Promise<void>;

	/** Whether the session's principal may start more work; `exceeded` also if the session has ended. */
	quota(session: SessionKey): Promise<"left" | "exceeded">;
	/**
	 * Opens a stream with the calls it is for, or adds calls to it.
	 * `in_use`: nothing was opened, since a call of one of these ids is open in the session, its response has not been
	 * sent to anybody yet, or two have the same. Rejects with `session_ended`; a `TypeError` for a name that is not 1
	 * to 512 characters of visible ASCII. Other methods open a stream that is not there yet, without calls.
	 */
	openStream(
		session: SessionKey,
		stream: string,
		calls: readonly Call[],
		kind?: StreamKind,
	): Promise<"opened" | "in_use">;
	/** The call of that id that is still open in the session, or whose response waits, with its stream. */
	openCall(session: SessionKey, id: RequestId): Promise<(Call & { stream: string }) | undefined>;
	/** A call ends without a response: it was cancelled. */
	closeCall(session: SessionKey, id: RequestId): Promise<void>;

	/** The label of the event that may be referred to by this name; `forget` when it has been. */
	reference(session: SessionKey, name: string): Promise<Label | undefined>;
	forget(session: SessionKey, name: string): Promise<void>;

	/**
	 * Appends; resolves with the event's id. Rejects with `session_ended`, or with `event_too_large`: then the
	 * call of a terminal event is still open.
	 */
	append(session: SessionKey, stream: string, event: NewEvent): Promise<string>;
	/**
	 * This event's bytes, and those before it on its stream, go out now. `false`: there is no such event, or another
	 * than the given `holder` holds the stream; nothing is marked then, and nothing may go out.
	 */
	markWritten(session: SessionKey, id: string, holder?: Holder): Promise<boolean>;
	/** The client has this event, and those before it on its stream, as far as they have been written. */
	acknowledge(session: SessionKey, id: string): Promise<void>;
	/**
	 * What a cursor claims to have: the events up to and with it that were written and are not acknowledged
	 * yet, in order.
	 */
	unacknowledged(session: SessionKey, id: string): Promise<readonly EventHeader[]>;
	locate(session: SessionKey, cursor: string): Promise<Location>;
	/**
	 * Events after the id `after` (`undefined`: all that are left), in order, at most `limit`. After an id that was not
	 * issued on this stream: none, and `evicted`.
	 */
	read(session: SessionKey, stream: string, after: string | undefined, limit: number): Promise<Stretch>;
	/**
	 * The id up to which a client is known to have the stream: where one starts that has no cursor. A stream that nothing
	 * is acknowledged of has an id before its first event, which counts as written (it is what primes a client, MCP
	 * 2025-11-25). Rejects with `session_ended`.
	 */
	start(session: SessionKey, stream: string): Promise<string>;

	/** Takes the stream over from whoever holds it. */
	hold(session: SessionKey, stream: string, holder: Holder): Promise<void>;
	/** Lets go of the stream, if `holder` still has it. */
	release(session: SessionKey, stream: string, holder: Holder): Promise<void>;
	/** `undefined`: nobody, or the session is gone. */
	holder(session: SessionKey, stream: string): Promise<Holder | undefined>;
	/**
	 * Hears of appends, calls that end, new holders and the end of the session, after it has happened; returns
	 * how to stop listening. It may be called for nothing (a store behind a network does so once it listens),
	 * so a listener looks for itself. One that throws keeps no other from hearing.
	 */
	watch(session: SessionKey, stream: string, listener: () => void): () => void;
}
