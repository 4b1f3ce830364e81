import type { RequestId, SessionFacts } from "../generated/types.ts";
import { emit } from "../resume/emit.ts";
import { endSession, foundOf, type Ground } from "../resume/ground.ts";
import { createPost, type LivePost, type LiveSession, postOf } from "../resume/live.ts";
import { readEmitted } from "../wire/messages.ts";
import { currentPost, runPost } from "./sdk.ts";

/** A server transport of the guard's own, for `server.connect` of both MCP SDKs. */
export interface GuardTransport {
	readonly sessionId: string;
	onmessage?: ((message: object, extra?: object) => void) | undefined;
	onclose?: (() => void) | undefined;
	onerror?: ((error: Error) => void) | undefined;
	start(): Promise<void>;
	send(message: object, options?: { relatedRequestId?: RequestId | undefined }): Promise<void>;
	close(): Promise<void>;
}

/** Connects an MCP server to a transport: `(transport) => createServer().connect(transport)`. */
export type Connect = (transport: GuardTransport) => Promise<void> | void;

/**
 * Connects an MCP server to a session that has just been opened, on a transport that only appends: what the server sends
 * goes to the event log, and from there to whoever holds the stream. No connection is its own, so none that drops ends a
 * call. If it cannot be connected the session ends.
 *
 * @throws {Error} its `cause` is what `connect` throws, or that it has connected nothing
 */
export async function connectOwn(
	ground: Ground,
	session: LiveSession,
	kind: SessionFacts["transport"],
	connect: Connect,
): Promise<void> {
	const transport = createOwnTransport(ground, session, kind);
	try {
		await connect(transport);
		if (transport.onmessage === undefined) throw new TypeError("`connect` has connected no MCP server");
	} catch (cause) {
		await endSession(ground, session.key);
		// Hosts tell clients what an error says.
		throw new Error("the MCP server could not be connected", { cause });
	}
}

function createOwnTransport(
	ground: Ground,
	session: LiveSession,
	kind: SessionFacts["transport"],
): GuardTransport {
	const rest = kind === "sse" ? nobodys(ground, session) : undefined;
	let isClosed = false;
	let first: object | undefined;

	const transport: GuardTransport = {
		sessionId: session.id,
		async start() {},
		async send(message, options) {
			const { response } = readEmitted(message);
			if (response !== undefined) first ??= message;
			const call = response ?? options?.relatedRequestId;
			const known = call === undefined ? undefined : postOf(session, call);
			if (call !== undefined && known === undefined) {
				// On HTTP+SSE everything comes on one stream.
				if (rest !== undefined && response === undefined) {
					await emit(ground, session, { message, post: rest });
					return;
				}
				// Nobody waits for it, and another may have its id by now.
				const ended = new Error("the call has ended");
				if ("id" in message) throw ended;
				// Tools rarely wait for what they notify: a rejection would end the process, as soon as a client cancels.
				transport.onerror?.(ended);
				return;
			}
			const shown = known?.show(message) ?? message;
			await emit(ground, session, { message: shown, post: known, call, context: currentPost() });
		},
		async close() {
			if (isClosed) return;
			isClosed = true;
			await endSession(ground, session.key);
			transport.onclose?.();
		},
	};
	session.own = {
		receive(message, post, extra) {
			if (typeof message !== "object" || message === null) return;
			runPost(post, () => transport.onmessage?.(message, extra));
		},
		get hasFailed() {
			return first !== undefined && "error" in first;
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
