import { parse } from "./decision.ts";
import { type Failure, RecoveryError } from "./errors.ts";
import { exchange, isEventStream } from "./exchange.ts";
import { failureMessage, lost, refusal } from "./failure.ts";
import { about, type Fetch, type Ground } from "./ground.ts";
import { type Call, type Calls, noteAnnotations, type Posted, readPosted, responseId } from "./messages.ts";
import type { Streaming } from "./resume.ts";
import { follow } from "./stream.ts";
import { linked } from "./timing.ts";

/** A stream that calls wait for. */
interface Followed {
	readonly calls: Calls;
	abort(): void;
}

/**
 * A `fetch` for the transport of one client. What it answers to a request is complete: an SSE stream that goes on,
 * over as many connections as it takes, until each call has its own result or error. The transport sees neither SSE
 * ids nor broken connections, and so never resumes anything by itself.
 *
 * Tokens go to the origin of the MCP endpoint only.
 */
export function createRecoveringFetch(ground: Ground): Fetch {
	const streams = new Set<Followed>();

	function cancel(ids: Posted["cancelled"]): void {
		for (const stream of streams) {
			const deleted = ids.filter((id) => stream.calls.delete(String(id)));
			// No server answers a call that has been cancelled.
			if (deleted.length > 0 && stream.calls.size === 0) stream.abort();
		}
	}

	async function post(url: string | URL, init: RequestInit, calls: readonly Call[]): Promise<Response> {
		const subject = about(ground, calls[0] ?? {});
		const waiting: Calls = new Map(calls.map((call) => [String(call.id), call]));
		const life = linked(init.signal);
		const stream = { calls: waiting, abort: life.abort };
		const end = () => {
			streams.delete(stream);
			life.release();
			life.abort();
		};
		streams.add(stream);
		try {
			const request = { ...init, signal: life.signal };
			const answer = await send(subject, url, request, waiting);
			if ("held" in answer) {
				const frames = follow(subject, { ...answer, url, init: request, calls: waiting });
				return new Response(streamOf(frames, end), answer.response);
			}
			end();
			if ("response" in answer) return answer.response;
			subject.report({ type: "failed", code: answer.code });
			const errors = calls.map((call) => failureMessage(call, answer, ground.mark));
			return jsonResponse(errors.length === 1 ? errors.join() : `[${errors.join()}]`);
		} catch (error) {
			end();
			throw error;
		}
	}

	return async (url, init = {}) => {
		if (new URL(url).origin !== ground.url.origin) return ground.fetch(url, init);
		const { calls, cancelled } = readPosted(init.method === "POST" ? init.body : undefined);
		cancel(cancelled);
		// On HTTP+SSE (MCP 2024-11-05) the answers come elsewhere.
		const isAnsweredHere = new Headers(init.headers).get("accept")?.includes("text/event-stream");
		if (calls.length > 0 && isAnsweredHere) return post(url, init, calls);
		const signal = init.signal ?? new AbortController().signal;
		return (await exchange(ground, url, { ...init, signal }, new Set())).response;
	};
}

/** A stream to follow; a whole response, for the transport; or why there is none. */
type Answer = Pick<Streaming, "response" | "held"> | { readonly response: Response } | Failure;

async function send(
	ground: Ground,
	url: string | URL,
	init: Streaming["init"],
	calls: Calls,
): Promise<Answer> {
	// Without a session there is a client that is about to connect: the error is for whoever connects it.
	const isInSession = new Headers(init.headers).has("mcp-session-id");
	try {
		const { response, held, refused, failure } = await exchange(ground, url, init, new Set());
		if (failure !== undefined) return { ...failure, mayHaveRun: false, ...refused };
		if (refused !== undefined) return refusal(refused, false);
		if (!response.ok) return { response };
		if (isEventStream(response)) return { response, held };
		const body = await response.text();
		return readAnswers(ground, body, calls)
			? { response: new Response(body, response) }
			: lost("The server answered without a result");
	} catch (error) {
		if (!isInSession || init.signal.aborted || error instanceof RecoveryError) throw error;
		return lost("The connection was lost before the answer");
	}
}

// Whether the body has the result or error of each call.
function readAnswers({ annotations }: Ground, body: string, calls: Calls): boolean {
	for (const message of [parse(body)].flat()) {
		const id = responseId(message);
		if (id === undefined) continue;
		noteAnnotations(annotations, calls.get(id), message);
		calls.delete(id);
	}
	return calls.size === 0;
}

function streamOf(frames: AsyncGenerator<string, void>, end: () => void): ReadableStream<Uint8Array> {
	const encoder = new TextEncoder();
	return new ReadableStream({
		async pull(controller) {
			const { done, value } = await frames.next();
			if (!done) return controller.enqueue(encoder.encode(value));
			end();
			controller.close();
		},
		cancel() {
			end();
			void frames.return();
		},
	});
}

function jsonResponse(body: string): Response {
	return new Response(body, { headers: { "content-type": "application/json" } });
}
