import type { Answer, WholeAnswer } from "../wire/answer.ts";
import { sseHeaders } from "../wire/answer.ts";
import { acceptsStream } from "../wire/headers.ts";
import { errorAnswer, refusalAnswer } from "../wire/refusal.ts";
import { endpointFrame } from "../wire/sse.ts";
import { notHere } from "./calls.ts";
import { createDeliver } from "./delivery.ts";
import { findSession, type Ground, type Incoming, settle } from "./ground.ts";
import type { LiveSession, LiveSessions, MessageExtra } from "./live.ts";
import { openSession } from "./open.ts";
import { admitPost } from "./post.ts";
import { pumpAll } from "./pump.ts";

/** A GET that opened a session of HTTP+SSE (MCP 2024-11-05), or its refusal. */
export type Opening =
	| { readonly answer: WholeAnswer }
	| { readonly session: LiveSession; readonly answer: Answer };

/**
 * Answers a GET of the SSE endpoint: a new session, always. Its stream is the session's own; all that the server emits
 * goes there, with ids, so that it can be resumed at the streamable endpoint.
 *
 * @param endpoint where to post, without the session id
 */
export async function openSse(
	ground: Ground,
	lives: LiveSessions,
	incoming: Incoming,
	endpoint: string,
): Promise<Opening> {
	if (!acceptsStream(incoming.headers)) {
		const message = "Not Acceptable: Client must accept text/event-stream";
		return { answer: errorAnswer(406, { code: -32000, message }) };
	}
	// A session id of before is no business of this endpoint.
	const found = await findSession(ground, { ...incoming, sessionId: undefined });
	const decision = ground.guard.session(found.facts);
	await settle(ground, { moment: "session", decision });
	if (decision.outcome !== "proceed") return { answer: refusalAnswer(decision, ground.resourceMetadata) };

	const opened = await openSession(ground, lives, found, "sse");
	if (opened === undefined) {
		const request = { ...found.facts.request, quota: "exceeded" } as const;
		const refused = ground.guard.session({ ...found.facts, request });
		await settle(ground, { moment: "session", decision: refused });
		if (refused.outcome === "proceed") throw new Error("the policy lets in what cannot be served");
		return { answer: refusalAnswer(refused, ground.resourceMetadata) };
	}
	const { session } = opened;
	const { key, id, getStream: stream } = session;
	await ground.events.openStream(key, stream, [], "lasting");
	const cursor = await ground.events.start(key, stream);
	const deliver = createDeliver(ground, opened.found);
	const pump = { ground, found: opened.found, key, stream, cursor, primes: false, deliver };
	return {
		session,
		answer: {
			status: 200,
			headers: sseHeaders,
			async stream(sink) {
				await sink.write(endpointFrame(`${endpoint}?sessionId=${id}`, cursor));
				await pumpAll(pump, sink);
			},
		},
	};
}

/** Answers a POST of the message endpoint: what it asks for comes on the session's stream. */
export async function postSse(
	ground: Ground,
	lives: LiveSessions,
	incoming: Incoming,
	body: unknown,
	extra: MessageExtra,
): Promise<WholeAnswer> {
	if (incoming.sessionId === undefined) {
		const found = await findSession(ground, incoming);
		const decision = ground.guard.session(found.facts);
		await settle(ground, { moment: "session", decision });
		if (decision.outcome !== "proceed") return refusalAnswer(decision, ground.resourceMetadata);
		return errorAnswer(400, { code: -32000, message: "Bad Request: sessionId is required" });
	}
	const admitted = await admitPost(ground, lives, incoming, body);
	if ("answer" in admitted) return admitted.answer;
	const { session, post, body: passed } = admitted;
	const { own } = session ?? {};
	const isOfSse = admitted.found.record?.transport === "sse";
	if (own === undefined || !isOfSse) return notHere(ground, session, post);
	for (const message of [passed].flat()) own.receive(message, post, extra);
	return { status: 202, headers: {}, body: "Accepted" };
}
