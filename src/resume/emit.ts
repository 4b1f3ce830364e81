import { ResumeGuardError } from "../errors.ts";
import type { EventLog } from "../events/log.ts";
import type { Label, RequestId } from "../generated/types.ts";
import { isPriming, readEmitted, tellsOfCall } from "../wire/messages.ts";
import { endCall, namesakes, widened } from "./calls.ts";
import { type Ground, settle } from "./ground.ts";
import { breakOff, type LivePost, type LiveSession, unionOf } from "./live.ts";

const INTERNAL_ERROR = -32603;

function isTooLarge(error: unknown): error is ResumeGuardError {
	return error instanceof ResumeGuardError && error.code === "event_too_large";
}

/** Something that the MCP server emits, and what it belongs to as far as that is known. */
export interface Emitted {
	/** A JSON-RPC message, or `{}` to prime a stream. */
	readonly message: unknown;
	/** The POST on whose stream it goes; `undefined`: the session's own GET stream. */
	readonly post: LivePost | undefined;
	/** The call that it belongs to. */
	readonly call?: RequestId | undefined;
	/** The POST in whose asynchronous context it was emitted, if there is one. */
	readonly context?: LivePost | undefined;
}

/** What is under way on each stream, by the POST or the session that it is of. */
const turns = new WeakMap<LivePost | LiveSession, Promise<string>>();

/**
 * Appends what the MCP server emits to the event log, and then decides whether it may be written to the POST's own
 * response: if not, the response is cut before the server writes it. The event waits in the log.
 *
 * One after the other on each stream. So events are logged in the order in which they are emitted, and an MCP server that
 * writes an event when it has its id writes them in the order of the log: a cursor never stands after one that was not
 * written.
 *
 * @returns the event's id
 * @throws {ResumeGuardError} `session_ended`, `event_too_large`
 */
export function emit(ground: Ground, session: LiveSession, emitted: Emitted): Promise<string> {
	const { post } = emitted;
	const stream = post === undefined || post.stream === session.getStream ? session : post;
	const run = () => emitNow(ground, session, emitted);
	const before = turns.get(stream);
	const turn = before === undefined ? run() : before.then(run, run);
	turns.set(stream, turn);
	return turn;
}

async function emitNow(ground: Ground, session: LiveSession, emitted: Emitted): Promise<string> {
	const { events } = ground;
	const { message, post } = emitted;
	if (isPriming(message)) return prime(ground, session, post);
	const { response: answered, references } = readEmitted(message);
	const call = answered ?? emitted.call ?? onlyCall(post);
	const stream = post?.stream ?? session.getStream;
	const isCertain = answered !== undefined || (post !== undefined && emitted.context === post);
	const label =
		post === undefined ? sessionLabel(ground, session, emitted) : labelOf(session, post, call, isCertain);
	const event = {
		message: JSON.stringify(message),
		label,
		...(call !== undefined && { request_id: call }),
		...(answered !== undefined && { terminal: true }),
		...(references.length > 0 && { references }),
	};
	let id: string;
	try {
		if (post !== undefined) post.isAppending = true;
		const appended = events.append(session.key, stream, event);
		if (post !== undefined) post.isAppending = false;
		id = await appended;
	} catch (error) {
		if (answered === undefined || !isTooLarge(error)) {
			// Whoever waits for it would wait for ever.
			post?.cut?.();
			throw error;
		}
		// The call must end: whoever comes back for its result is told why there is none.
		const told = { jsonrpc: "2.0", id: answered, error: { code: INTERNAL_ERROR, message: error.message } };
		id = await events.append(session.key, stream, { ...event, message: JSON.stringify(told) });
	}
	if (post === undefined) return id;
	post.hasEmitted = true;
	const header = { id, label, ...(call !== undefined && { request_id: call }) };
	if (post.response?.isOpen()) await decideWriting(ground, session, post, header);
	if (answered !== undefined) endCall(session, answered);
	return id;
}

// It says nothing, so there is nothing to decide or to keep.
async function prime({ events }: Ground, session: LiveSession, post: LivePost | undefined): Promise<string> {
	const id = await events.start(session.key, post?.stream ?? session.getStream);
	if (post === undefined) return id;
	post.hasEmitted = true;
	if (post.response?.isOpen()) await markWriting(events, session, post, id);
	return id;
}

// The server writes the event when this is done, if the response is still open then.
async function decideWriting(
	ground: Ground,
	session: LiveSession,
	post: LivePost,
	event: { id: string; label: Label; request_id?: RequestId },
): Promise<void> {
	const decision = post.deliver(event);
	if (decision.outcome === "proceed") return markWriting(ground.events, session, post, event.id);
	const { tool, rpc } = event.label;
	await settle(ground, { moment: "delivery", decision, session: session.key, tool, rpc });
	breakOff(post, decision);
}

async function markWriting(
	events: EventLog,
	session: LiveSession,
	post: LivePost,
	id: string,
): Promise<void> {
	if (await events.markWritten(session.key, id, post.holder)) post.hasCursor = true;
	else post.response?.cut();
}

function onlyCall(post: LivePost | undefined): RequestId | undefined {
	const [only, ...others] = post?.calls ?? [];
	return others.length === 0 ? only?.request_id : undefined;
}

/**
 * What is not known to be of one call needs what all calls of its stream need. An MCP server sends what a call emits late
 * to the stream of a later call of the same id: if the context does not say which, it needs what all of that id need.
 */
function labelOf(
	session: LiveSession,
	post: LivePost,
	call: RequestId | undefined,
	isCertain: boolean,
): Label {
	const known = post.calls.find(({ request_id }) => request_id === call);
	if (known !== undefined) return isCertain ? known.label : widened(known.label, namesakes(session, known));
	return post.calls.length > 0 ? unionOf(post.calls.map(({ label }) => label)) : session.everything;
}

/**
 * On the session's own stream: what session-level messages need. What tells of a call (a question to the client, whose
 * answer goes into the call; a log line) also needs what the POST needs that it was emitted within, since the SDKs do not
 * say for which call it is; within none, what all calls of the session have needed.
 */
function sessionLabel({ guard }: Ground, session: LiveSession, { message, context }: Emitted): Label {
	const need = guard.data.session_need;
	if (!tellsOfCall(message)) return need;
	const labels = context === undefined ? [session.everything] : context.calls.map(({ label }) => label);
	return unionOf([need, ...labels]);
}
