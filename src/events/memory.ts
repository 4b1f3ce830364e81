import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import { ResumeGuardError } from "../errors.ts";
import type { Label, RequestId } from "../generated/types.ts";
import { createListeners } from "../listeners.ts";
import { LONGEST_WAIT, withLimits } from "../sessions/limits.ts";
import type { SessionKey } from "../sessions/store.ts";
import { checkStreamName, parseEventId } from "./id.ts";
import type { EventHeader, EventLog, StoredEvent } from "./log.ts";
import { createAccount, createRoom, EVENT_OVERHEAD, type EventLogLimits } from "./room.ts";
import {
	type Account,
	type CallState,
	createStream,
	evictedAt,
	forgetAnswered,
	freeIds,
	idOf,
	isFinished,
	isGone,
	issued,
	isTaken,
	locateOn,
	lost,
	pendingAfter,
	requestKey,
	type Session,
	type Stream,
} from "./stream.ts";

export { EVENT_OVERHEAD, type EventLogLimits } from "./room.ts";

export interface EventLogStats {
	/** Held now. */
	readonly events: number;
	readonly bytes: number;
	/** Gone since the start because of a limit; those of sessions that ended are not counted. */
	readonly evicted: number;
	/** Of these, the ones that no client was known to have. */
	readonly evictedUnacknowledged: number;
}

export interface MemoryEventLog extends EventLog {
	stats(): EventLogStats;
}

const MIB = 1024 * 1024;
const DEFAULTS: EventLogLimits = {
	bytes: 64 * MIB,
	bytesPerPrincipal: 8 * MIB,
	events: 100_000,
	eventsPerPrincipal: 20_000,
	streams: 50_000,
	streamsPerPrincipal: 10_000,
	openCallsPerPrincipal: 1_000,
	age: 3_600,
	referencesPerSession: 1_000,
};
const DROPPED_SESSIONS = 10_000;

/**
 * The event log of one process.
 *
 * - A principal over its own limits loses events of its own; what the log holds too much in all is taken from
 *   anyone's acknowledged events, then from anyone's finished and written streams, then from the principal that
 *   appends, down to the event just appended. So no other's event goes that its client may still be waiting for.
 * - `quota` is `exceeded` at the limit on open calls or unfinished streams, and at three quarters of a limit on
 *   events or bytes, of those that have not been written: a client that is connected keeps its quota.
 * - Finished streams are known after their events are gone, so that a cursor at their end is `retained` with
 *   nothing pending. Over the limit on streams the oldest are forgotten; a cursor on a forgotten one is `evicted`,
 *   with nobody waiting, since what came after it can no longer be told.
 * - Events that are too old go by themselves; the timer keeps no process alive.
 */
export function createMemoryEventLog(given?: Partial<EventLogLimits>): MemoryEventLog {
	const limits = withLimits(DEFAULTS, given);
	const epoch = randomBytes(6).toString("base64url");
	const principals = new Map<string, { readonly account: Account; sessions: number }>();
	const sessions = new Map<SessionKey, { readonly session: Session; readonly principal: string }>();
	/** A session may end between its two openings, in the session store and here. */
	const dropped = new LRUCache<SessionKey, true>({ max: DROPPED_SESSIONS });
	/** How many sessions have a stream of that name. */
	const names = new Map<string, number>();
	const room = createRoom(limits, forgetStream);
	let order = 0;
	let waiting = false;

	const find = (key: SessionKey): Session | undefined => sessions.get(key)?.session;

	function mustFind(key: SessionKey): Session {
		const session = find(key);
		if (!session) throw new ResumeGuardError("session_ended", "the session has ended");
		return session;
	}

	function openStream(session: Session, name: string): Stream {
		const known = session.streams.get(name);
		if (known) return known;
		checkStreamName(name);
		const stream = createStream(session, name, ++order);
		session.streams.set(name, stream);
		names.set(name, (names.get(name) ?? 0) + 1);
		room.addStream(stream);
		return stream;
	}

	function forgetName(name: string): void {
		const left = (names.get(name) ?? 0) - 1;
		if (left > 0) names.set(name, left);
		else names.delete(name);
	}

	function forgetStream(stream: Stream): void {
		const { session, name } = stream;
		session.streams.delete(name);
		session.forgotten = Math.max(session.forgotten, stream.last);
		freeIds(stream, true);
		forgetName(name);
	}

	function tell(session: Session, stream: string): void {
		session.watchers.get(stream)?.tell();
	}

	function takenBy(session: Session, key: string): CallState | undefined {
		const call = session.calls.get(key);
		return call && isTaken(call) ? call : undefined;
	}

	/** A request id may be used again once the response to its call has gone out. */
	function freeId(session: Session, id: RequestId | undefined): void {
		if (id === undefined) return;
		const key = requestKey(id);
		if (!takenBy(session, key)) session.calls.delete(key);
	}

	/** `on`: where its response is. */
	function endCall(session: Session, id: RequestId, on?: { stream: Stream; n: number }): void {
		const key = requestKey(id);
		const call = session.calls.get(key);
		if (call?.state !== "open") return;
		room.endCall(call, on?.stream === call.stream ? on.n : "ended");
		freeId(session, id);
		tell(session, call.stream.name);
	}

	function keepReference(session: Session, name: string, label: Label): void {
		session.references.delete(name);
		session.references.set(name, label);
		for (const oldest of session.references.keys()) {
			if (session.references.size <= limits.referencesPerSession) break;
			session.references.delete(oldest);
		}
	}

	function sweepLater(oldest: number | undefined): void {
		waiting = oldest !== undefined;
		if (oldest === undefined) return;
		const seconds = (oldest - performance.now()) / 1_000 + limits.age;
		setTimeout(sweep, Math.max(1, Math.min(seconds, LONGEST_WAIT) * 1_000)).unref();
	}

	function sweep(): void {
		sweepLater(room.evictUntil(performance.now() - limits.age * 1_000));
	}

	return {
		async open(key, principal) {
			if (sessions.has(key) || dropped.has(key)) return;
			const payer = principals.get(principal) ?? { account: createAccount(), sessions: 0 };
			payer.sessions += 1;
			principals.set(principal, payer);
			const session: Session = {
				principal: payer.account,
				epoch: `${epoch}${randomBytes(6).toString("base64url")}`,
				streams: new Map(),
				calls: new Map(),
				references: new Map(),
				watchers: new Map(),
				forgotten: 0,
			};
			sessions.set(key, { session, principal });
		},

		async drop(key) {
			dropped.set(key, true);
			const entry = sessions.get(key);
			if (!entry) return;
			sessions.delete(key);
			const { session, principal } = entry;
			for (const stream of session.streams.values()) {
				room.remove(stream);
				forgetName(stream.name);
			}
			const payer = principals.get(principal);
			if (payer) payer.sessions -= 1;
			if (payer?.sessions === 0) principals.delete(principal);
			for (const watchers of session.watchers.values()) watchers.tell();
		},

		async quota(key) {
			const session = find(key);
			return session && !room.isFull(session.principal) ? "left" : "exceeded";
		},

		async openStream(key, name, calls, kind = "calls") {
			const session = mustFind(key);
			const keys = new Set(calls.map((call) => requestKey(call.request_id)));
			if (keys.size < calls.length || [...keys].some((id) => takenBy(session, id))) return "in_use";
			const stream = openStream(session, name);
			if (kind === "lasting") stream.lasting = true;
			if (stream.lasting) forgetAnswered(stream);
			for (const call of calls) session.calls.set(requestKey(call.request_id), room.addCall(stream, call));
			return "opened";
		},

		async openCall(key, id) {
			const session = find(key);
			const found = session && takenBy(session, requestKey(id));
			return found && { ...found.call, stream: found.stream.name };
		},

		async closeCall(key, id) {
			const session = find(key);
			if (session) endCall(session, id);
		},

		async reference(key, name) {
			return find(key)?.references.get(name);
		},

		async forget(key, name) {
			find(key)?.references.delete(name);
		},

		async append(key, name, event) {
			const session = mustFind(key);
			const stream = openStream(session, name);
			const n = stream.last + 1;
			const id = idOf(stream, n);
			const bytes = Buffer.byteLength(event.message) + id.length + EVENT_OVERHEAD;
			if (!room.fits(bytes)) {
				throw new ResumeGuardError(
					"event_too_large",
					`an event of ${bytes} bytes is more than the log may hold`,
				);
			}
			const { label, request_id, message } = event;
			const header = request_id === undefined ? { id, label } : { id, label, request_id };
			for (const reference of event.references ?? []) keepReference(session, reference, label);
			const at = performance.now();
			room.add(stream, { n, order: ++order, at, bytes, header, message });
			if (!waiting) sweepLater(at);
			if (event.terminal && request_id !== undefined) endCall(session, request_id, { stream, n });
			tell(session, name);
			return id;
		},

		async markWritten(key, id, holder) {
			const session = find(key);
			const at = session && issued(session, id);
			if (!at || (holder !== undefined && at.stream.holder !== holder)) return false;
			const { stream, n } = at;
			const before = stream.written;
			room.markWritten(stream, n);
			for (const event of pendingAfter(stream, before)) {
				if (event.n > n) break;
				freeId(session, event.header.request_id);
			}
			return true;
		},

		async acknowledge(key, id) {
			const session = find(key);
			const at = session && issued(session, id);
			if (!at) return;
			const { stream, n } = at;
			stream.acknowledged = Math.max(stream.acknowledged, Math.min(n, stream.written));
			room.file(stream);
		},

		async unacknowledged(key, id) {
			const session = find(key);
			const at = session && issued(session, id);
			if (!at) return [];
			const headers: EventHeader[] = [];
			for (const { n, header } of pendingAfter(at.stream, at.stream.acknowledged)) {
				if (n > Math.min(at.n, at.stream.written)) break;
				headers.push(header);
			}
			return headers;
		},

		async locate(key, cursor) {
			const session = find(key);
			const id = parseEventId(cursor);
			if (!session || !id) return { position: "unknown" };
			const stream = session.streams.get(id.stream);
			if (stream && id.epoch === session.epoch) return locateOn(stream, id.n);
			// Of another session of this log that has a stream of the same name.
			if (stream && id.epoch.startsWith(epoch)) return { position: "foreign" };
			if (stream) return evictedAt(stream, 0);
			if (id.epoch === session.epoch && id.n <= session.forgotten) {
				return { position: "evicted", stream: id.stream, waiting: [] };
			}
			return { position: names.has(id.stream) ? "foreign" : "unknown" };
		},

		async read(key, name, after, limit) {
			const stream = find(key)?.streams.get(name);
			const at = stream && after !== undefined ? issued(stream.session, after) : undefined;
			// Nothing is known after an id of elsewhere, or in a session that is gone: never a clean end.
			if (!stream || (after !== undefined && at?.stream !== stream)) {
				return { events: [], evicted: after !== undefined || !sessions.has(key), finished: false };
			}
			const evicted = at ? isGone(stream, at.n) : lost(stream) > stream.start;
			const events: StoredEvent[] = [];
			let more = false;
			for (const { header, message } of pendingAfter(stream, at?.n ?? stream.start)) {
				more = events.length >= limit;
				if (more) break;
				events.push({ ...header, message });
			}
			return { events, evicted, finished: !more && isFinished(stream) };
		},

		async start(key, name) {
			const stream = openStream(mustFind(key), name);
			return idOf(stream, stream.acknowledged);
		},

		async hold(key, name, holder) {
			const session = find(key);
			if (!session) return;
			openStream(session, name).holder = holder;
			tell(session, name);
		},

		async release(key, name, holder) {
			const stream = find(key)?.streams.get(name);
			if (stream?.holder === holder) stream.holder = undefined;
		},

		async holder(key, name) {
			return find(key)?.streams.get(name)?.holder;
		},

		watch(key, name, listener) {
			const session = find(key);
			if (!session) return () => {};
			const watchers = session.watchers.get(name) ?? createListeners();
			session.watchers.set(name, watchers);
			const stop = watchers.add(listener);
			return () => {
				stop();
				if (watchers.size === 0 && session.watchers.get(name) === watchers) session.watchers.delete(name);
			};
		},

		stats: room.stats,
	};
}
