import type { RequestId } from "../generated/types.ts";
import { emit } from "../resume/emit.ts";
import { endSession, foundOf, type Ground } from "../resume/ground.ts";
import { createPost, type LivePost, type LiveSession, postOf } from "../resume/live.ts";
import { readEmitted, tellsOfCall } from "../wire/messages.ts";

/** A server transport of the guard's own, for `server.connect` of both MCP SDKs (HTTP+SSE, MCP 2024-11-05). */
export interface GuardTransport {
	readonly sessionId: string;
	onmessage?: ((message: object, extra?: object) => void) | undefined;
	onclose?: (() => void) | undefined;
	onerror?: ((error: Error) => void) | undefined;
	start(): Promise<void>;
	send(message: object, options?: { relatedRequestId?: RequestId | undefined }): Promise<void>;
	close(): Promise<void>;
}

/**
 * A transport that only appends: what the server sends goes to the event log, and from there to whoever holds the
 * stream. No connection is its own, so none that drops ends a call.
 */
export function createOwnTransport(ground: Ground, session: LiveSession): GuardTransport {
	const rest: LivePost = nobodys(ground, session);
	let isClosed = false;

	const transport: GuardTransport = {
		sessionId: session.id,
		async start() {},
		async send(message, options) {
			const call = readEmitted(message).response ?? options?.relatedRequestId;
			const ofSession = call === undefined && !tellsOfCall(message);
			const post = ofSession ? undefined : (call !== undefined && postOf(session, call)) || rest;
			await emit(ground, session, { message: post?.show(message) ?? message, post, call });
		},
		async close() {
			if (isClosed) return;
			isClosed = true;
			await endSession(ground, session.key);
			transport.onclose?.();
		},
	};
	session.own = {
		receive(message) {
			if (typeof message === "object" && message !== null) transport.onmessage?.(message);
		},
	};
	session.close = () => transport.close();
	return transport;
}

// What is of a call that is not known any more needs what all calls have needed.
function nobodys(ground: Ground, session: LiveSession): LivePost {
	const request = { method: "POST", transport: "sse", session: "none" } as const;
	const found = foundOf(ground, request, undefined, undefined, undefined);
	return createPost(ground, found, session.getStream, []);
}
