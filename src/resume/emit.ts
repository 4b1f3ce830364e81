import { ResumeGuardError } from "../errors.ts";
import type { Label, RequestId } from "../generated/types.ts";
import { readEmitted } from "../wire/messages.ts";
import { refusalError } from "../wire/refusal.ts";
import { messageFrame } from "../wire/sse.ts";
import { type Ground, settle } from "./ground.ts";
import { type LivePost, type LiveSession, unionOf } from "./live.ts";

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
}

/**
 * Appends what the MCP server emits to the event log, and then decides whether it may be written to the POST's own
 * response: if not, the response is cut before the server writes it. The event waits in the log.
 *
 * @returns the event's id
 * @throws {ResumeGuardError} `session_ended`, `event_too_large`
 */
export async function emit(ground: Ground, session: LiveSession, emitted: Emitted): Promise<string> {
	const { events } = ground;
	const { message, post } = emitted;
	const { response: answered, references } = readEmitted(message);
	const call = answered ?? emitted.call ?? onlyCall(post);
	const stream = post?.stream ?? session.getStream;
	const label = labelOf(ground, session, post, call);
	const event = {
		message: JSON.stringify(message),
		label,
		...(call !== undefined && { request_id: call }),
		...(answered !== undefined && { terminal: true }),
		...(references.length > 0 && { references }),
	};
	const id = await events.append(session.key, stream, event).catch((error) => {
		if (answered === undefined || !isTooLarge(error)) throw error;
		// The call must end: whoever comes back for its result is told why there is none.
		const told = { jsonrpc: "2.0", id: answered, error: { code: INTERNAL_ERROR, message: error.message } };
		return events.append(session.key, stream, { ...event, message: JSON.stringify(told) });
	});
	if (post !== undefined) {
		post.hasEmitted = true;
		await decideWriting(ground, session, post, {
			id,
			label,
			...(call !== undefined && { request_id: call }),
		});
		if (answered !== undefined && (await isFinished(ground, session, post))) session.posts.delete(post);
	}
	return id;
}

// The server writes the event when this is done, if the response is still open then.
async function decideWriting(
	ground: Ground,
	session: LiveSession,
	post: LivePost,
	event: { id: string; label: Label; request_id?: RequestId },
): Promise<void> {
	const { events } = ground;
	const { response } = post;
	if (response === undefined || !response.isOpen()) return;
	if ((await events.holder(session.key, post.stream)) !== post.holder) return response.cut();
	const decision = post.deliver(event);
	if (decision.outcome === "proceed") {
		await events.markWritten(session.key, event.id);
		post.hasCursor = true;
		return;
	}
	const { tool, rpc } = event.label;
	await settle(ground, { moment: "delivery", decision, session: session.key, tool, rpc });
	if (post.hasCursor) return response.cut();
	// Without a cursor the client cannot come back for it.
	const error = refusalError(decision);
	response.finish(
		post.calls
			.map(({ request_id }) => messageFrame(JSON.stringify({ jsonrpc: "2.0", id: request_id, error })))
			.join(""),
	);
}

function onlyCall(post: LivePost | undefined): RequestId | undefined {
	const [only, ...others] = post?.calls ?? [];
	return others.length === 0 ? only?.request_id : undefined;
}

/** What is not known to be of one call needs what all calls of its stream need. */
function labelOf(
	{ guard }: Ground,
	{ everything }: LiveSession,
	post: LivePost | undefined,
	call: RequestId | undefined,
): Label {
	if (post === undefined) return guard.data.session_need;
	const known = post.calls.find(({ request_id }) => request_id === call);
	if (known !== undefined) return known.label;
	return post.calls.length > 0 ? unionOf(post.calls.map(({ label }) => label)) : everything;
}

async function isFinished(ground: Ground, session: LiveSession, post: LivePost): Promise<boolean> {
	for (const { request_id } of post.calls) {
		const open = await ground.events.openCall(session.key, request_id);
		if (open?.stream === post.stream) return false;
	}
	return true;
}
