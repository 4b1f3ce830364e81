import type { Answer } from "../wire/answer.ts";
import { sseHeaders } from "../wire/answer.ts";
import { acceptsAnswers, protocolVersion, takesEmptyEvents } from "../wire/headers.ts";
import { isInitialize, revisionAsked } from "../wire/messages.ts";
import { errorAnswer } from "../wire/refusal.ts";
import { closeCalls, notHere } from "./calls.ts";
import { endSession, type Ground, type Incoming, inBackground, NOBODY } from "./ground.ts";
import type { LiveSession, MessageExtra, OwnTransport } from "./live.ts";
import type { Admitted } from "./post.ts";
import { pumpAll } from "./pump.ts";

/** Why a POST cannot be answered with a stream, whoever sends it; as the MCP SDKs' transports have it. */
export function whyNoStream({ headers }: Incoming, body: unknown): Answer | undefined {
	if (!acceptsAnswers(headers)) {
		const message = "Not Acceptable: Client must accept both application/json and text/event-stream";
		return errorAnswer(406, { code: -32000, message });
	}
	if (protocolVersion(headers) === undefined && !isInitialize(body)) {
		return errorAnswer(400, { code: -32000, message: "Bad Request: Unsupported protocol version" });
	}
	return undefined;
}

/**
 * Answers a POST at the streamable endpoint for a session that runs on the guard's own transport: what its calls emit
 * goes to a stream of its own, which is served from the event log.
 */
export async function answerPost(
	ground: Ground,
	incoming: Incoming,
	{ body, found, post, opens }: Admitted,
	session: LiveSession,
	own: OwnTransport | undefined,
	extra: MessageExtra,
): Promise<Answer> {
	if (own === undefined) return notHere(ground, session, post);
	if (isInitialize(body) && !opens && found.record?.transport === "streamable-http") {
		if (post !== undefined) await closeCalls(ground, session, post);
		return errorAnswer(400, { code: -32600, message: "Invalid Request: Server already initialized" });
	}
	const messages = [body].flat();
	if (post === undefined) {
		for (const message of messages) own.receive(message, undefined, extra);
		return { status: 202, headers: {}, body: "" };
	}
	const { key } = session;
	const { stream, deliver } = post;
	const primes = takesEmptyEvents(revisionAsked(body) ?? protocolVersion(incoming.headers) ?? "");
	const cursor = await ground.events.start(key, stream);
	const calls = post.calls.map(({ request_id }) => request_id);
	const pump = { ground, found, key, stream, cursor, primes, calls, deliver };
	// Who has no cursor could not come back.
	const closers = primes && {
		closeSSEStream: () => letGo(ground, key, stream),
		closeStandaloneSSEStream: () => letGo(ground, key, session.getStream),
	};
	return {
		status: 200,
		headers: { ...sseHeaders, "mcp-session-id": session.id },
		async stream(sink) {
			post.cut = sink.cut;
			for (const message of messages) own.receive(message, post, { ...extra, ...closers });
			await pumpAll(pump, sink);
			if (opens && own.hasFailed) await endSession(ground, key);
		},
	};
}

/** Ends a stream's connection cleanly, so that the client polls (MCP 2025-11-25, SEP-1699). */
function letGo(ground: Ground, key: string, stream: string): void {
	inBackground(ground, ground.events.hold(key, stream, NOBODY));
}
