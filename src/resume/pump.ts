import type { StoredEvent } from "../events/log.ts";
import type { RequestId, ResumeDecision } from "../generated/types.ts";
import type { Sink } from "../wire/answer.ts";
import { readEmitted } from "../wire/messages.ts";
import { failedFrames } from "../wire/refusal.ts";
import { cursorFrame, errorFrame, keepAliveFrame, messageFrame, retryFrame } from "../wire/sse.ts";
import { type Deliver, decideAgain } from "./delivery.ts";
import { atExpiry } from "./expiry.ts";
import { type Found, type Ground, inBackground, newName, settle } from "./ground.ts";
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
	/** The id that the client has; events after it are sent. */
	readonly cursor: string;
	/** Events after the cursor are gone, which the client is told with this; all that is left is sent. */
	readonly told?: string;
	/** Whether the client takes an event without data, which secures its cursor. */
	readonly primes: boolean;
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
	sink.closed.addEventListener("abort", bell.ring);
	const keepAlive = setInterval(() => {
		void sink.write(keepAliveFrame);
		// A session whose stream is open is not idle.
		inBackground(ground, ground.sessions.find(key));
	}, KEEP_ALIVE_MS);
	const cancelExpiry = atExpiry(ground, found, () => sink.cut());
	const stopListening = ground.guard.onRevision(bell.ring);
	let { revision } = found;
	const isHeld = async () => !sink.closed.aborted && (await events.holder(key, stream)) === holder;
	const isGrounded = () => {
		if (revision === ground.guard.revision) return true;
		({ revision } = ground.guard);
		return decideAgain(ground, found) === undefined;
	};

	try {
		if (pump.told !== undefined) await sink.write(pump.told);
		else if (pump.primes) await sink.write(cursorFrame(pump.cursor));
		let at = pump.told === undefined ? pump.cursor : undefined;
		while ((await isHeld()) && isGrounded()) {
			const stretch = await events.read(key, stream, at, STRETCH);
			if (stretch.evicted && at !== undefined) return sink.cut();
			for (const event of stretch.events) {
				if (sink.closed.aborted || !isGrounded()) return sink.cut();
				if (!(await mayGoOut(pump, event))) return sink.cut();
				if (!(await events.markWritten(key, event.id, holder))) return sink.cut();
				await sink.write(messageFrame(shown(pump, event), event.id));
				at = event.id;
			}
			if (stretch.events.length > 0) continue;
			if (stretch.finished) return sink.end();
			await bell.rung();
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
			if (sink.closed.aborted || !(await mayGoOut(pump, event))) return sink.cut();
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

async function mayGoOut({ ground, key, deliver }: Pump, event: Parameters<Deliver>[0]): Promise<boolean> {
	const decision = deliver(event);
	if (decision.outcome === "proceed") return true;
	await settle(ground, { moment: "delivery", decision, session: key, ...subjectOf(event.label) });
	return false;
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
