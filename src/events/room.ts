import type { Call } from "./log.ts";
import { createQueue } from "./queue.ts";
import {
	type Account,
	type CallState,
	isFinished,
	lost,
	type Retained,
	type Shelves,
	type Stream,
} from "./stream.ts";

/** What an event costs beside its message and id, in bytes: its label, its place in the queues. */
export const EVENT_OVERHEAD = 256;

/**
 * The share of a limit on events and bytes at which new work is refused, so that the work that runs has
 * room left before anything has to go that its client has not been sent.
 */
const NEW_WORK_SHARE = 0.75;

/** What the event log may hold. */
export interface EventLogLimits {
	/** Bytes of messages, ids and an overhead of 256 an event, in all. Default 64 MiB. */
	readonly bytes: number;
	/** Default 8 MiB. An event that is larger than this is refused. */
	readonly bytesPerPrincipal: number;
	/** Events in all. Default 100,000. */
	readonly events: number;
	/** Default 20,000. */
	readonly eventsPerPrincipal: number;
	/** Streams that are known in all, those included of which no event is left. Default 50,000. */
	readonly streams: number;
	/** Default 10,000. */
	readonly streamsPerPrincipal: number;
	/** Calls without a response. Default 1,000. */
	readonly openCallsPerPrincipal: number;
	/** Seconds that an event is kept. Default 3,600. */
	readonly age: number;
	/** Names of events that a client may refer to, for each session. Default 1,000. */
	readonly referencesPerSession: number;
}

const SHELVES = ["oldest", "acknowledged", "spent", "empty"] as const;

export function createAccount(): Account {
	return {
		events: 0,
		bytes: 0,
		unwrittenEvents: 0,
		unwrittenBytes: 0,
		streams: 0,
		openCalls: 0,
		oldest: createQueue(),
		acknowledged: createQueue(),
		spent: createQueue(),
		empty: createQueue(),
	};
}

/**
 * No cursor leads to what is left: every client of the stream stands before an event that had to go. It is not kept,
 * so that it does not count against those who are told to call again.
 */
function isUnreachable(stream: Stream): boolean {
	const isForCalls = stream.calls.length > 0 && !stream.lasting;
	return isForCalls && stream.events.length > 0 && lost(stream) > stream.written;
}

/**
 * The books of the event log: who has what in it, and what has to go when it is too much. `forget` takes a
 * stream out of everywhere else.
 */
export function createRoom(limits: EventLogLimits, forget: (stream: Stream) => void) {
	const total = createAccount();
	let evicted = 0;
	let evictedUnacknowledged = 0;

	const accountsOf = (stream: Stream): [Account, Account] => [total, stream.session.principal];

	function shelve(stream: Stream, shelf: keyof Shelves<unknown>, order: number | undefined): void {
		if (stream.shelved[shelf] === order) return;
		stream.shelved[shelf] = order;
		for (const account of accountsOf(stream)) account[shelf].put(stream, order);
	}

	/** Puts the stream where it now belongs; to be called after whatever changes it. */
	function file(stream: Stream): void {
		const front = stream.events.at(0);
		const finished = isFinished(stream);
		const spent = front && finished && stream.written === stream.last;
		shelve(stream, "oldest", front?.order);
		shelve(stream, "acknowledged", front && front.n <= stream.acknowledged ? front.order : undefined);
		shelve(stream, "spent", spent ? stream.order : undefined);
		shelve(stream, "empty", !front && finished ? stream.order : undefined);
	}

	function count(stream: Stream, event: Retained, sign: 1 | -1): void {
		for (const account of accountsOf(stream)) {
			account.events += sign;
			account.bytes += sign * event.bytes;
			if (event.n > stream.written) {
				account.unwrittenEvents += sign;
				account.unwrittenBytes += sign * event.bytes;
			}
		}
	}

	function evict(stream: Stream, upTo: number): void {
		for (let event = stream.events.at(0); event && event.n <= upTo; event = stream.events.at(0)) {
			count(stream, event, -1);
			stream.events.shift();
			evicted += 1;
			if (event.n > stream.acknowledged) evictedUnacknowledged += 1;
		}
		if (isUnreachable(stream)) evict(stream, stream.last);
		else file(stream);
	}

	/** As evict and remove, without a place on the shelves in between. */
	function discard(stream: Stream): void {
		const { length } = stream.events;
		const unacknowledged = stream.last - Math.max(stream.acknowledged, lost(stream));
		remove(stream);
		evicted += length;
		evictedUnacknowledged += unacknowledged;
	}

	const evictOldest = (stream: Stream): void => evict(stream, lost(stream) + 1);

	function remove(stream: Stream): void {
		for (let event = stream.events.shift(); event; event = stream.events.shift()) count(stream, event, -1);
		for (const account of accountsOf(stream)) {
			account.streams -= 1;
			account.openCalls -= stream.open;
		}
		for (const shelf of SHELVES) shelve(stream, shelf, undefined);
	}

	/** Acknowledged events go first, then spent streams, then what the principal itself has longest. */
	function makeRoom(isOver: () => boolean, from: Account, principal: Account): void {
		while (isOver()) {
			const acknowledged = from.acknowledged.first();
			const spent = from.spent.first();
			const own = principal.oldest.first();
			if (acknowledged) evictOldest(acknowledged);
			else if (spent) evict(spent, spent.last);
			else if (own) evictOldest(own);
			else return;
		}
	}

	function makeRoomForStreams(limit: number, from: Account): void {
		while (from.streams > limit) {
			const stream = from.empty.first() ?? from.spent.first();
			if (!stream) return;
			discard(stream);
			forget(stream);
		}
	}

	return {
		file,
		remove,

		addStream(stream: Stream): void {
			for (const account of accountsOf(stream)) account.streams += 1;
			makeRoomForStreams(limits.streamsPerPrincipal, stream.session.principal);
			makeRoomForStreams(limits.streams, total);
		},

		addCall(stream: Stream, call: Call): CallState {
			const added: CallState = { call, stream, state: "open" };
			stream.calls.push(added);
			stream.open += 1;
			for (const account of accountsOf(stream)) account.openCalls += 1;
			file(stream);
			return added;
		},

		endCall(call: CallState, state: "ended" | number): void {
			call.state = state;
			call.stream.open -= 1;
			for (const account of accountsOf(call.stream)) account.openCalls -= 1;
			file(call.stream);
		},

		/** Whether an event of this size can be held at all. */
		fits: (bytes: number): boolean => bytes <= Math.min(limits.bytes, limits.bytesPerPrincipal),

		add(stream: Stream, event: Retained): void {
			stream.events.push(event);
			stream.last = event.n;
			stream.order = event.order;
			count(stream, event, 1);
			if (isUnreachable(stream)) evict(stream, stream.last);
			else file(stream);
			const { principal } = stream.session;
			makeRoom(
				() => principal.bytes > limits.bytesPerPrincipal || principal.events > limits.eventsPerPrincipal,
				principal,
				principal,
			);
			makeRoom(() => total.bytes > limits.bytes || total.events > limits.events, total, principal);
		},

		markWritten(stream: Stream, n: number): void {
			for (let next = Math.max(stream.written, lost(stream)) + 1; next <= n; next += 1) {
				const event = stream.events.at(next - lost(stream) - 1);
				if (!event) break;
				for (const account of accountsOf(stream)) {
					account.unwrittenEvents -= 1;
					account.unwrittenBytes -= event.bytes;
				}
			}
			stream.written = Math.max(stream.written, n);
			file(stream);
		},

		/** Evicts what is as old as `at` or older; returns when the oldest that is left was appended. */
		evictUntil(at: number): number | undefined {
			for (;;) {
				const stream = total.oldest.first();
				const event = stream?.events.at(0);
				if (!stream || !event) return undefined;
				if (event.at > at) return event.at;
				evictOldest(stream);
			}
		},

		/** Whether a principal has to wait before it starts more work. */
		isFull(principal: Account): boolean {
			const unfinished = (account: Account) => account.streams - account.spent.size - account.empty.size;
			return (
				principal.openCalls >= limits.openCallsPerPrincipal ||
				unfinished(principal) >= limits.streamsPerPrincipal ||
				unfinished(total) >= limits.streams ||
				principal.unwrittenEvents >= limits.eventsPerPrincipal * NEW_WORK_SHARE ||
				principal.unwrittenBytes >= limits.bytesPerPrincipal * NEW_WORK_SHARE ||
				total.unwrittenEvents >= limits.events * NEW_WORK_SHARE ||
				total.unwrittenBytes >= limits.bytes * NEW_WORK_SHARE
			);
		},

		stats: () => ({ events: total.events, bytes: total.bytes, evicted, evictedUnacknowledged }),
	};
}
