import type { Call } from "../events/log.ts";
import type { Label, RequestId } from "../generated/types.ts";
import type { WholeAnswer } from "../wire/answer.ts";
import { errorAnswer, SESSION_NOT_FOUND } from "../wire/refusal.ts";
import type { Ground } from "./ground.ts";
import { type LivePost, type LiveSession, withNeeds } from "./live.ts";

/** Request ids that a session remembers the needs of. */
const MAX_FINISHED = 10_000;

/** A call that runs here has its response, or was cancelled: a POST whose calls all have is done with. */
export function endCall(session: LiveSession, id: RequestId): void {
	for (const post of session.posts) {
		// No two that run have one id.
		if (!post.waiting.delete(id)) continue;
		if (post.waiting.size === 0) retire(session, post);
		return;
	}
}

/** The calls of a POST get no response: they are not running. */
export async function closeCalls(
	{ events }: Pick<Ground, "events">,
	session: LiveSession,
	post: LivePost,
): Promise<void> {
	for (const id of [...post.waiting]) {
		await events.closeCall(session.key, id);
		endCall(session, id);
	}
}

/**
 * The answer to a POST of a session whose transport is not here: it runs on another machine, or ran in a process that is no
 * more.
 */
export async function notHere(
	ground: Ground,
	session: LiveSession | undefined,
	post: LivePost | undefined,
): Promise<WholeAnswer> {
	if (session !== undefined && post !== undefined) await closeCalls(ground, session, post);
	return errorAnswer(404, SESSION_NOT_FOUND);
}

/** Labels of the calls of that id. */
export function namesakes({ posts, finished }: LiveSession, { request_id }: Call): Label[] {
	const running = [...posts].flatMap(({ calls }) => calls.filter((call) => call.request_id === request_id));
	const labels = running.map(({ label }) => label);
	const before = finished.get(keyOf(request_id));
	return before === undefined ? labels : [...labels, before];
}

/** The label itself, unless the others need more. */
export function widened(label: Label, others: readonly Label[]): Label {
	return others.reduce(withNeeds, label);
}

// What its calls have needed is remembered.
function retire({ posts, finished }: LiveSession, post: LivePost): void {
	posts.delete(post);
	for (const { request_id, label } of post.calls) {
		const key = keyOf(request_id);
		const before = finished.get(key);
		finished.delete(key);
		finished.set(key, before === undefined || before === label ? label : widened(label, [before]));
	}
	for (const oldest of finished.keys()) {
		if (finished.size <= MAX_FINISHED) break;
		finished.delete(oldest);
	}
}

function keyOf(id: RequestId): string {
	return `${typeof id} ${id}`;
}
