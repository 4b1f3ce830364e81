import { isRecord, parse, type Refusal, type Refused, refusalOf, refusalOfFrame } from "./decision.ts";
import type { Failure } from "./errors.ts";
import { failureMessage, lost } from "./failure.ts";
import type { Ground } from "./ground.ts";
import { type Calls, noteAnnotations, responseId } from "./messages.ts";
import { comeBack, type End, type Position, type Streaming, unspent } from "./resume.ts";
import { readEvents, type ServerEvent } from "./sse.ts";
import { TimedOut } from "./timing.ts";

/** The longest time that a server can have a client wait between polls, in milliseconds. */
const MAX_RETRY = 30_000;

/**
 * What a POST answers, over as many connections as it takes: SSE frames without ids, until each call has its own
 * result or error. Where that cannot be had, the call gets a JSON-RPC error that says so. A response to a call that
 * has one already is left out, as is an event that has been passed on before.
 */
export async function* follow(ground: Ground, streaming: Streaming): AsyncGenerator<string, void> {
	const { calls, init, held } = streaming;
	const position: Position = {
		cursor: undefined,
		seen: new Set(),
		held,
		retry: undefined,
		...unspent(ground),
	};
	let { response } = streaming;
	let failure: Failure | undefined;
	while (failure === undefined) {
		const end = yield* forward(ground, calls, position, response);
		if (calls.size === 0 || init.signal.aborted) return;
		try {
			const next = await comeBack(ground, streaming, position, end);
			if ("code" in next) failure = next;
			else response = next;
		} catch (error) {
			if (init.signal.aborted) return;
			failure =
				error instanceof TimedOut
					? { code: "recovery_timeout", message: "The stream could not be resumed in time", mayHaveRun: true }
					: lost("The stream cannot be resumed");
		}
	}
	ground.report({ type: "failed", code: failure.code });
	for (const call of calls.values()) yield frame(failureMessage(call, failure, ground.mark));
}

async function* forward(
	ground: Ground,
	calls: Calls,
	position: Position,
	{ body }: Response,
): AsyncGenerator<string, End> {
	if (body === null) return {};
	let paced = false;
	try {
		for await (const event of readEvents(body)) {
			if (event.retry !== undefined) {
				position.retry = Math.min(event.retry, MAX_RETRY);
				paced = true;
			}
			const read = readEvent(event, calls, position.seen);
			if (read.refused !== undefined) return { refused: read.refused };
			if (read.data !== undefined) {
				const { id, message } = read;
				if (id !== undefined) {
					noteAnnotations(ground.annotations, calls.get(id), message);
					calls.delete(id);
				}
				if (event.id !== undefined) {
					// Without a new id it is no progress: the next connection may say the same again.
					position.seen.add(event.id);
					Object.assign(position, unspent(ground));
				}
				yield frame(read.data);
			}
			position.cursor = event.id ?? position.cursor;
		}
		return { polled: paced };
	} catch {
		// A broken connection.
		return {};
	}
}

/** What a client should have of an event, or why there is no more to come. */
interface Read {
	readonly refused?: Refused;
	readonly data?: string;
	readonly message?: unknown;
	/** The call that the message is the response to. */
	readonly id?: string | undefined;
}

function readEvent({ type, data, id: eventId }: ServerEvent, calls: Calls, seen: Position["seen"]): Read {
	if (!data) return {};
	if (type === "error") return refusedWith(refusalOfFrame(data));
	if (type !== "" && type !== "message") return {};
	if (eventId !== undefined && seen.has(eventId)) return {};
	const message = parse(data);
	const id = responseId(message);
	if (id === undefined)
		return isRecord(message) && typeof message.method === "string" ? { data, message } : {};
	if (!calls.has(id)) return {};
	const decision = refusalOf(message);
	return decision === undefined ? { data, message, id } : refusedWith(decision);
}

function refusedWith(decision: Refusal | undefined): Read {
	return decision === undefined ? {} : { refused: { outcome: decision.outcome, decision } };
}

function frame(data: string): string {
	return `${data
		.split("\n")
		.map((line) => `data: ${line}\n`)
		.join("")}\n`;
}
