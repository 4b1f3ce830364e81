import { EventSourceParserStream } from "eventsource-parser/stream";
import type { FetchRequest } from "mcp-resume-guard/fetch";

type Session = NonNullable<FetchRequest["session"]>;
type Transport = NonNullable<Session["transport"]>;
type AuthInfo = FetchRequest["authInfo"];

/** An MCP endpoint behind the guard, which nobody else reaches. */
export type Inner = (request: Request, authInfo: AuthInfo) => Promise<Response>;

/** Headers of one connection (RFC 9110 section 7.6.1), and of a body that the guard writes anew. */
const OF_CONNECTION = ["connection", "keep-alive", "transfer-encoding", "content-length", "date"];
/** The name that the MCP SDKs give to the stream of a session's own GET. */
const GET_STREAM = "_GET_stream";

/**
 * Puts an MCP endpoint that keeps no events, or gives them to anyone, behind the guard: each message that it streams is
 * put into the guard's event log before it goes on, and is read also when the client has left. For `session.attach`, in
 * place of a transport of the MCP SDK.
 */
export function createTap(session: Pick<Session, "id" | "transportOptions">, inner: Inner): Transport {
	const { id, transportOptions } = session;
	let url = "";
	let innerId: string | undefined;
	let streams = 0;

	function ask(method: string, headers: Headers, body: unknown, authInfo: AuthInfo): Promise<Response> {
		for (const name of ["mcp-session-id", ...OF_CONNECTION]) headers.delete(name);
		if (innerId !== undefined) headers.set("mcp-session-id", innerId);
		const sent = body === undefined ? {} : { body: JSON.stringify(body) };
		return inner(new Request(url, { method, headers, ...sent }), authInfo);
	}

	// From 2025-11-25 on, a stream begins with an id, so that one that drops before its first message can be resumed.
	async function* primed(stream: string): AsyncGenerator<string> {
		yield `id: ${await transportOptions.eventStore.storeEvent(stream, {})}\ndata: \n\n`;
	}

	async function* stored(stream: string, body: NonNullable<Response["body"]>): AsyncGenerator<string> {
		const text = body.pipeThrough(new TextDecoderStream());
		for await (const { data } of text.pipeThrough(new EventSourceParserStream())) {
			if (data === "") continue;
			const event = await transportOptions.eventStore.storeEvent(stream, JSON.parse(data));
			yield `event: message\nid: ${event}\ndata: ${data}\n\n`;
		}
	}

	// What the endpoint sends of its own; the client's GET is for the guard to answer.
	async function listen(): Promise<void> {
		const { body } = await ask("GET", new Headers({ accept: "text/event-stream" }), undefined, undefined);
		if (body !== null) for await (const _ of stored(GET_STREAM, body));
	}

	return {
		async handleRequest(request, { parsedBody, authInfo } = {}) {
			({ url } = request);
			const response = await ask("POST", new Headers(request.headers), parsedBody, authInfo);
			const headers = new Headers(response.headers);
			for (const name of OF_CONNECTION) headers.delete(name);
			const named = headers.get("mcp-session-id");
			if (named !== null) headers.set("mcp-session-id", id);
			if (named !== null && innerId === undefined) {
				innerId = named;
				// It ends with the session.
				listen().catch(() => undefined);
			}
			const { status, body } = response;
			if (body === null || !headers.get("content-type")?.startsWith("text/event-stream")) {
				return new Response(body, { status, headers });
			}
			streams += 1;
			const stream = `POST ${streams}`;
			const primes = (request.headers.get("mcp-protocol-version") ?? "") >= "2025-11-25";
			const chunks = readToTheEnd(primes ? [primed(stream), stored(stream, body)] : [stored(stream, body)]);
			return new Response(chunks, { status, headers });
		},
		async send() {},
		async close() {
			if (innerId !== undefined) await ask("DELETE", new Headers(), undefined, undefined);
		},
	};
}

function readToTheEnd(parts: readonly AsyncIterable<string>[]): ReadableStream<Uint8Array> {
	let isOpen = true;
	const text = new ReadableStream<string>({
		async start(controller) {
			for (const part of parts) for await (const chunk of part) if (isOpen) controller.enqueue(chunk);
			if (isOpen) controller.close();
		},
		cancel() {
			isOpen = false;
		},
	});
	return text.pipeThrough(new TextEncoderStream());
}
