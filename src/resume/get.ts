import { readPresented } from "../claims.ts";
import type { Location } from "../events/log.ts";
import type { RequestId, ResumeDecision } from "../generated/types.ts";
import type { SessionRecord } from "../sessions/store.ts";
import { type Answer, type StreamAnswer, sseHeaders } from "../wire/answer.ts";
import {
	acceptsStream,
	isPlausibleId,
	lastEventId,
	protocolVersion,
	takesEmptyEvents,
} from "../wire/headers.ts";
import { errorAnswer, failedFrames, refusalAnswer } from "../wire/refusal.ts";
import { errorFrame } from "../wire/sse.ts";
import { acknowledge, createDeliver } from "./delivery.ts";
import {
	type Found,
	findSession,
	type Ground,
	getStreamOf,
	type Incoming,
	NOBODY,
	settle,
} from "./ground.ts";
import { type Pump, pumpAll, pumpPrefix } from "./pump.ts";

/** A JSON-RPC error that no guard decided (as the MCP SDKs answer). */
const PLAIN_ERROR = -32000;
/** How long a refused resume remembers that it has been refused once, in seconds. */
const STAGE_TTL = 60;

/**
 * Answers a GET: the session's own stream, or with `Last-Event-ID` the stream that the cursor is of, replayed from the
 * event log and then live; 204 if nothing more can come (HTML Living Standard section 9.2.1: do not come back).
 */
export async function answerGet(ground: Ground, incoming: Incoming): Promise<Answer> {
	const { headers } = incoming;
	if (!acceptsStream(headers)) return plain(406, "Not Acceptable: Client must accept text/event-stream");
	const version = protocolVersion(headers);
	if (version === undefined) return plain(400, "Bad Request: Unsupported protocol version");

	const found = await findSession(ground, incoming);
	const cursor = lastEventId(headers);
	const primes = takesEmptyEvents(version);
	return cursor === undefined ? openGetStream(ground, found, primes) : resume(ground, found, cursor, primes);
}

async function openGetStream(ground: Ground, found: Found, primes: boolean): Promise<Answer> {
	const decision = ground.guard.session(found.facts);
	await settle(ground, { moment: "session", decision, session: found.key });
	if (decision.outcome !== "proceed") return refusalAnswer(decision, ground.resourceMetadata);

	const { key } = requireRecord(found);
	const { events } = ground;
	const stream = getStreamOf(key);
	if (![undefined, NOBODY].includes(await events.holder(key, stream))) {
		return plain(409, "Conflict: Only one SSE stream is allowed per session");
	}
	// Who comes without a cursor has nothing that it has not acknowledged.
	const cursor = await events.start(key, stream);
	const location = await events.locate(key, cursor);
	const pump = pumpOf(ground, found, key, stream, cursor, primes);
	if (location.position === "evicted") return streamRest(pump);
	if (location.position === "retained" && location.pending.length === 0) return streamAll(pump);
	return answerAt(ground, found, cursor, location, primes);
}

/**
 * What no client is known to have had to go in part. This one has no cursor that it could be refused with, so it is told,
 * and then sent what there is.
 */
async function streamRest(pump: Pump): Promise<Answer> {
	const { ground, found, key, cursor } = pump;
	const position = "evicted";
	const decision = ground.guard.resume({ ...found.facts, cursor: { last_event_id: cursor, position } });
	await settle(ground, { moment: "resume", decision, session: key, cursor, position });
	if (decision.outcome === "proceed") throw new Error("proceed without a retained cursor");
	if (decision.outcome !== "reissue") return refusalAnswer(decision, ground.resourceMetadata);
	return streamAll({ ...pump, told: errorFrame(JSON.stringify(decision)) });
}

async function resume(ground: Ground, found: Found, cursor: string, primes: boolean): Promise<Answer> {
	const location = await locate(ground, found, cursor);
	return answerAt(ground, found, cursor, location, primes, () =>
		acknowledge(ground, found, requireRecord(found).key, cursor),
	);
}

/** Decides about what waits after the cursor; `proceeds` is called if it goes out. */
async function answerAt(
	ground: Ground,
	found: Found,
	cursor: string,
	location: Location,
	primes: boolean,
	proceeds?: () => Promise<void>,
): Promise<Answer> {
	const { position } = location;
	const decision = ground.guard.resume({
		...found.facts,
		cursor: { last_event_id: cursor, position },
		pending:
			location.position === "retained"
				? location.pending.map(({ id, request_id, label }) => ({
						id,
						...(request_id !== undefined && { request_id }),
						...label,
					}))
				: [],
		open:
			location.position === "retained"
				? location.open.map(({ request_id, label }) => ({ request_id, ...label }))
				: [],
	});
	await settle(ground, { moment: "resume", decision, session: found.key, cursor, position });

	if (location.position === "retained") {
		if (decision.outcome === "proceed") {
			const { key } = requireRecord(found);
			const pump = pumpOf(ground, found, key, location.stream, cursor, primes);
			await proceeds?.();
			// A client whose stream ended without what it takes for a response would ask for it again and again.
			const isOver = location.pending.length === 0 && (await isFinished(pump));
			return isOver ? { status: 204, headers: {}, body: "" } : streamAll(pump);
		}
		if (decision.outcome === "reauthorize") {
			const pump = pumpOf(ground, found, requireRecord(found).key, location.stream, cursor, primes);
			return decision.deliver > 0
				? streamPrefix(pump, decision, waitingFor(location))
				: refuseInStages(pump, decision, waitingFor(location));
		}
	}
	if (decision.outcome === "proceed") throw new Error("proceed without a retained cursor");
	const waiting =
		"waiting" in location ? location.waiting : "pending" in location ? waitingFor(location) : [];
	return decision.outcome === "reissue" && waiting.length > 0
		? failCalls(decision, waiting)
		: refusalAnswer(decision, ground.resourceMetadata);
}

async function isFinished({ ground, key, stream, cursor }: Pump): Promise<boolean> {
	const { events, finished } = await ground.events.read(key, stream, cursor, 1);
	return finished && events.length === 0;
}

async function locate(ground: Ground, { key, record }: Found, cursor: string): Promise<Location> {
	if (key === undefined || record === undefined || !isPlausibleId(cursor)) return { position: "unknown" };
	return ground.events.locate(key, cursor);
}

// A decision to proceed has looked at a session that is known.
function requireRecord({ record }: Found): SessionRecord {
	if (record === undefined) throw new Error("a decision without a session that is known");
	return record;
}

function pumpOf(
	ground: Ground,
	found: Found,
	key: string,
	stream: string,
	cursor: string,
	primes: boolean,
): Pump {
	return { ground, found, key, stream, cursor, primes, deliver: createDeliver(ground, found) };
}

function streamAll(pump: Pump): StreamAnswer {
	return { status: 200, headers: sseHeaders, stream: (sink) => pumpAll(pump, sink) };
}

function streamPrefix(pump: Pump, decision: Reauthorize, waiting: readonly RequestId[]): StreamAnswer {
	return { status: 200, headers: sseHeaders, stream: (sink) => pumpPrefix(pump, decision, waiting, sink) };
}

type Reauthorize = Extract<ResumeDecision, { outcome: "reauthorize" }>;

/**
 * First an HTTP error with a challenge, which a client that can step up acts on; if the same is asked again, a JSON-RPC
 * error for each call that waits, which every client gives to its caller, with its cursor as it was. A stream that no
 * call waits for has only the first.
 */
async function refuseInStages(
	pump: Pump,
	decision: Reauthorize,
	waiting: readonly RequestId[],
): Promise<Answer> {
	const { ground, key, stream, found } = pump;
	if (waiting.length > 0) {
		const asked = JSON.stringify([rightsOf(found), decision.required]);
		const isRepeated = await ground.sessions.repeated(key, stream, asked, STAGE_TTL);
		if (isRepeated) return failCalls(decision, waiting);
	}
	return refusalAnswer(decision, ground.resourceMetadata);
}

// Of the token's rights, not of its bytes: a refresh to the same must not start over.
function rightsOf({ facts: { presented } }: Found): unknown {
	const read = presented === undefined ? undefined : readPresented(presented, []);
	return read !== undefined && "value" in read ? [read.value.aud, read.value.scope] : [];
}

// Not even the cursor itself is an id in this answer: a client that takes an error for no response (SDK v1) would ask for
// it again and again, and take the stream from a later resume.
function failCalls(
	decision: Extract<ResumeDecision, { outcome: "reauthorize" | "reissue" }>,
	waiting: readonly RequestId[],
): StreamAnswer {
	const frames = errorFrame(JSON.stringify(decision)) + failedFrames(decision, waiting);
	return {
		status: 200,
		headers: sseHeaders,
		async stream(sink) {
			await sink.write(frames);
			sink.end();
		},
	};
}

// A call of which an event is pending has its response after the cursor, or it is still to come.
function waitingFor({ pending, open }: Extract<Location, { position: "retained" }>): RequestId[] {
	const ids = new Map<string, RequestId>();
	for (const { request_id } of [...pending, ...open]) {
		if (request_id !== undefined) ids.set(`${typeof request_id} ${request_id}`, request_id);
	}
	return [...ids.values()];
}

function plain(status: number, message: string): Answer {
	return errorAnswer(status, { code: PLAIN_ERROR, message });
}
