import type { Label, RequestId } from "../generated/types.ts";
import type { Listeners } from "../listeners.ts";
import { createDeque, type Deque } from "./deque.ts";
import { formatEventId, parseEventId } from "./id.ts";
import type { Call, EventHeader, Holder, Location } from "./log.ts";
import type { Queue } from "./queue.ts";

export interface Retained {
	readonly n: number;
	/** Its place among all events of the log. */
	readonly order: number;
	/** Milliseconds, monotonic. */
	readonly at: number;
	readonly bytes: number;
	readonly header: EventHeader;
	readonly message: string;
}

export interface CallState {
	readonly call: Call;
	readonly stream: Stream;
	/** A number: that of the event with its response. `ended`: it gets none on this stream. */
	state: "open" | "ended" | number;
}

export interface Session {
	readonly principal: Account;
	/** That of its ids: the log's, and a part of its own, so that a name that several sessions use gives no id twice. */
	readonly epoch: string;
	readonly streams: Map<string, Stream>;
	/** The calls that request ids stand for, by `requestKey`; see `isTaken`. */
	readonly calls: Map<string, CallState>;
	/** Oldest first. */
	readonly references: Map<string, Label>;
	readonly watchers: Map<string, Listeners<[]>>;
	/** The highest number of an event on a stream that has been forgotten. */
	forgotten: number;
}

export interface Stream {
	readonly name: string;
	readonly session: Session;
	/** Its events are numbered from here on: no lower number, which a forgotten stream of its name may have had, is its own. */
	readonly start: number;
	/** The newest that are left, without a gap. */
	readonly events: Deque<Retained>;
	/** The number of the newest event. */
	last: number;
	written: number;
	acknowledged: number;
	/** The place of its newest event, or of its opening, among all events of the log. */
	order: number;
	calls: CallState[];
	open: number;
	/** More may come when no call is open. */
	lasting: boolean;
	holder: Holder | undefined;
	/** Its place on each shelf that it is on. */
	readonly shelved: Shelves<number | undefined>;
}

/** The orders in which streams, or events of theirs, may have to go. */
export interface Shelves<T> {
	/** Streams with events, by the oldest of them. */
	oldest: T;
	/** Those whose oldest event is acknowledged, by its age. */
	acknowledged: T;
	/** Those that are finished and written, by their newest event. */
	spent: T;
	/** Finished streams without events. */
	empty: T;
}

/** What a principal, or all of them, have in the log, and what of it may go first. */
export interface Account extends Readonly<Shelves<Queue<Stream>>> {
	events: number;
	bytes: number;
	/** Of these, what no client has been sent. */
	unwrittenEvents: number;
	unwrittenBytes: number;
	streams: number;
	openCalls: number;
}

/** Ids of JSON-RPC are compared with their type. */
export function requestKey(id: RequestId): string {
	return `${typeof id}:${id}`;
}

export function createStream(session: Session, name: string, order: number): Stream {
	const start = session.forgotten + 1;
	return {
		name,
		session,
		start,
		events: createDeque(),
		last: start,
		written: start,
		acknowledged: start,
		order,
		calls: [],
		open: 0,
		lasting: false,
		holder: undefined,
		shelved: { oldest: undefined, acknowledged: undefined, spent: undefined, empty: undefined },
	};
}

/** The number of the newest event that is gone. */
export function lost(stream: Stream): number {
	return stream.last - stream.events.length;
}

/** The events after number `n` are not all there, or `n` may have been given to a forgotten stream of its name. */
export function isGone(stream: Stream, n: number): boolean {
	return n < lost(stream);
}

/** Nothing more can come: it was opened for calls, and none of them is open. */
export function isFinished(stream: Stream): boolean {
	return !stream.lasting && stream.calls.length > 0 && stream.open === 0;
}

/** A request id stands for a call that is open, or whose response is still to be sent to somebody. */
export function isTaken({ state, stream }: CallState): boolean {
	return state === "open" || (state !== "ended" && state > stream.written && state > lost(stream));
}

/** Frees the request ids of calls of the stream which stand for them no more; of all, if the stream is forgotten. */
export function freeIds({ session, calls }: Stream, all = false): void {
	for (const state of calls) {
		const key = requestKey(state.call.request_id);
		if ((all || !isTaken(state)) && session.calls.get(key) === state) session.calls.delete(key);
	}
}

/** A stream that lasts would otherwise know every call that it ever carried. */
const ANSWERED_CALLS = 1_000;

/** Forgets all but the newest of the calls that are answered. */
export function forgetAnswered(stream: Stream): void {
	let surplus = stream.calls.length - stream.open - ANSWERED_CALLS;
	if (surplus < ANSWERED_CALLS) return;
	freeIds(stream);
	stream.calls = stream.calls.filter(({ state }) => state === "open" || --surplus < 0);
}

export function idOf(stream: Stream, n: number): string {
	return formatEventId(stream.name, stream.session.epoch, n);
}

/** The stream and number of an id, if it was issued in this session and its stream is known. */
export function issued(session: Session, id: string): { stream: Stream; n: number } | undefined {
	const parsed = parseEventId(id);
	if (parsed?.epoch !== session.epoch) return undefined;
	const stream = session.streams.get(parsed.stream);
	return stream && parsed.n <= stream.last ? { stream, n: parsed.n } : undefined;
}

/** The retained events after number `n`, in order. */
export function* pendingAfter(stream: Stream, n: number): Generator<Retained, void> {
	for (let index = Math.max(0, n - lost(stream)); index < stream.events.length; index += 1) {
		const event = stream.events.at(index);
		if (event) yield event;
	}
}

/** Where the cursor with number `n` of this epoch stands on its stream. */
export function locateOn(stream: Stream, n: number): Location {
	if (n > stream.written) return { position: "ahead" };
	if (isGone(stream, n)) return evictedAt(stream, n);
	return {
		position: "retained",
		stream: stream.name,
		pending: Array.from(pendingAfter(stream, n), ({ header }) => header),
		open: stream.calls.filter(({ state }) => state === "open").map(({ call }) => call),
	};
}

/** A cursor that has lost its place; 0 if it says nothing about this epoch. */
export function evictedAt(stream: Stream, n: number): Location {
	const waiting = stream.calls.filter(({ state }) => state === "open" || (state !== "ended" && state > n));
	return { position: "evicted", stream: stream.name, waiting: waiting.map(({ call }) => call.request_id) };
}
