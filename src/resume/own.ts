import type { Answer } from "../wire/answer.ts";
import { sseHeaders } from "../wire/answer.ts";
import { protocolVersion, takesEmptyEvents } from "../wire/headers.ts";
import { type Ground, type Incoming, prime } from "./ground.ts";
import type { LiveSession, OwnTransport } from "./live.ts";
import type { Admitted } from "./post.ts";
import { pumpAll } from "./pump.ts";

/**
 * Answers a POST at the streamable endpoint for a session that runs on the guard's own transport (it was opened on
 * HTTP+SSE): what its calls emit goes to a stream of its own, which is served from the event log.
 */
export async function answerPost(
	ground: Ground,
	incoming: Incoming,
	{ body, found, post }: Admitted,
	session: LiveSession,
	own: OwnTransport,
): Promise<Answer> {
	const receive = () => {
		for (const message of [body].flat()) own.receive(message);
	};
	if (post === undefined) {
		receive();
		return { status: 202, headers: {}, body: "" };
	}
	const { key } = session;
	const { stream, deliver } = post;
	const cursor = await prime(ground, key, stream);
	const primes = takesEmptyEvents(protocolVersion(incoming.headers) ?? "");
	const pump = { ground, found, key, stream, cursor, primes, deliver };
	return {
		status: 200,
		headers: sseHeaders,
		async stream(sink) {
			receive();
			await pumpAll(pump, sink);
		},
	};
}
