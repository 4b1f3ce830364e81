import type { StoredEvent } from "../events/log.ts";
import type { RequestId, ResumeDecision } from "../generated/types.ts";
import type { Sink } from "../wire/answer.ts";
import { readEmitted } from "../wire/messages.ts";
import { type AnyDecision, failedFrames, type Refused } from "../wire/refusal.ts";
import { cursorFrame, errorFrame, keepAliveFrame, messageFrame, retryFrame } from "../wire/sse.ts";
import { type Deliver, decideAgain } from "./delivery.ts";
import { atExpiry } from "./expiry.ts";
import { type Found, type Ground, inBackground, NOBODY, newName, settle } from "./ground.ts";
import { createShow } from "./show.ts";

/** How many events are read from the log at a time. */
const STRETCH = 64;
const KEEP_ALIVE_MS = 15_000;
/** How soon a client may come again after a prefix. */
const RETRY_MS = 1_000;

export interface Pump {
	readonly ground: Ground;
	readonly found: Found;
	readonly key: string;
	readonly stream: string;
	/** Events after this id are sent. */
	readonly cursor: string;
	/** Events after the cursor are gone, which the client is told with this; all that is left is sent. */
	readonly told?: string;
	/** Whether the client takes an event without data, which secures its cursor. */
	readonly primes: boolean;
	/**
	 * The stream of a POST: its calls. A client that has no id of the stream yet cannot come back to it to be told why it
	 * was cut, so they are told.
	 */
	readonly calls?: readonly RequestId[];
	readonly deliver: Deliver;
}

/**
 * Sends what is pending on a stream, in order, then what comes, until the last response is out or the client leaves.
 * It takes the stream over from whoever holds it. Before each write the ground of the decision is looked at
 * again: the token, the session, the holder, the revision. If it is gone the connection is cut, never ended cleanly; the client's
 * next GET is answered with the reason.
 */
export async function pumpAll(pump: Pump, sink: Sink): Promise<void> {
	const { ground, found, key, stream } = pump;
	const { events } = ground;
	const holder = newName();
	await events.hold(key, stream, holder);
	const bell = createBell();
	const unwatch = events.watch(key, stream, bell.ring);
	sink.onClose(bell.ring);
	const keepAlive = setInterval(() => {
		void sink.write(keepAliveFrame);
		// A session whose stream is open is not idle.
		inBackground(ground, ground.sessions.find(key));
	}, KEEP_ALIVE_MS);
	let hasCursor = pump.calls === undefined || pump.primes;
	const cut = (decision: AnyDecision | undefined) => {
		if (hasCursor || decision === undefined || decision.outcome === "proceed") return sink.cut();
		void sink.write(failedFrames(decision, pump.calls ?? []));
		sink.end();
	};
	const cancelExpiry = atExpiry(ground, found, () => cut(ground.guard.session(found.facts)));
	const stopListening = ground.guard.onRevision(bell.ring);
	let { revision } = found;
	const refusedBy = () => {
		if (revision === ground.guard.revision) return undefined;
		({ revision } = ground.guard);
		return decideAgain(ground, found);
	};

	try {
		if (pump.told !== undefined) await sink.write(pump.told);
		else if (pump.primes) await sink.write(cursorFrame(pump.cursor));
		let at = pump.told === undefined ? pump.cursor : undefined;
		while (sink.isOpen()) {
			const held = await events.holder(key, stream);
			if (held === NOBODY) return sink.end();
			if (held !== holder) break;
			const refused = refusedBy();
			if (refused !== undefined) return cut(refused);
			const stretch = await events.read(key, stream, at, STRETCH);
			if (stretch.evicted && at !== undefined) return cut(decideEvicted(pump, at));
			for (const event of stretch.events) {
				const refused = refusedBy() ?? (await whyNot(pump, event));
				if (refused !== undefined) return cut(refused);
				if (!sink.isOpen() || !(await events.markWritten(key, event.id, holder))) return sink.cut();
				await sink.write(messageFrame(shown(pump, event), event.id));
				hasCursor = true;
				at = event.id;
			}
			if (stretch.finished) return sink.end();
			if (stretch.events.length === 0) await bell.rung();
		}
		sink.cut();
	} finally {
		clearInterval(keepAlive);
		cancelExpiry();
		stopListening();
		unwatch();
		await events.release(key, stream, holder);
	}
}

/**
 * Sends the pending events that `decision` lets out, and then why it is no more; the client's next GET is answered. A
 * client that has had a response on a stream does not come back to it: then the calls of it that still wait are failed.
 */
export async function pumpPrefix(
	pump: Pump,
	decision: Extract<ResumeDecision, { outcome: "reauthorize" }>,
	waiting: readonly RequestId[],
	sink: Sink,
): Promise<void> {
	const { ground, key, stream } = pump;
	const { deliver: count } = decision;
	const answered = new Set<RequestId>();
	if (pump.primes) await sink.write(cursorFrame(pump.cursor));
	let at = pump.cursor;
	for (let sent = 0; sent < count; ) {
		const stretch = await ground.events.read(key, stream, at, Math.min(STRETCH, count - sent));
		if (stretch.evicted || stretch.events.length === 0) return sink.cut();
		for (const event of stretch.events) {
			if (!sink.isOpen() || (await whyNot(pump, event)) !== undefined) return sink.cut();
			if (!(await ground.events.markWritten(key, event.id))) return sink.cut();
			await sink.write(messageFrame(shown(pump, event), event.id));
			const { response } = readEmitted(JSON.parse(event.message));
			if (response !== undefined) answered.add(response);
			at = event.id;
			sent += 1;
		}
	}
	const failed = answered.size === 0 ? [] : waiting.filter((id) => !answered.has(id));
	await sink.write(
		retryFrame(RETRY_MS) + errorFrame(JSON.stringify(decision)) + failedFrames(decision, failed),
	);
	sink.end();
}

// A list of tools was made for the token that asked for it, which may cover more than this one.
function shown({ ground, found }: Pump, { message, label }: StoredEvent): string {
	if (!ground.listCoveredTools || label.tool !== undefined || label.rpc !== undefined) return message;
	return JSON.stringify(createShow(ground, found)(JSON.parse(message)));
}

/** Why the event may not go out; `undefined`: it may. */
async function whyNot(
	{ ground, key, deliver }: Pump,
	event: Parameters<Deliver>[0],
): Promise<Refused | undefined> {
	const decision = deliver(event);
	if (decision.outcome === "proceed") return undefined;
	await settle(ground, { moment: "delivery", decision, session: key, ...subjectOf(event.label) });
	return decision;
}

/** Events had to go before they could be sent. Where the client has a cursor its next GET is answered with this. */
function decideEvicted({ ground, found }: Pump, at: string): AnyDecision {
	return ground.guard.probe.resume({ ...found.facts, cursor: { last_event_id: at, position: "evicted" } });
}

function subjectOf({ tool, rpc }: { tool?: string; rpc?: string }) {
	return { tool, rpc };
}

// Rings that come while nobody waits are heard at the next wait.
function createBell(): { ring: () => void; rung: () => Promise<void> } {
	let waiting: (() => void) | undefined;
	let rang = false;
	return {
		ring() {
			rang = true;
			waiting?.();
		},
		async rung() {
			if (!rang) {
				await new Promise<void>((resolve) => {
					waiting = resolve;
				});
			}
			waiting = undefined;
			rang = false;
		},
	};
}
