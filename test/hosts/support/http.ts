import { once } from "node:events";
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { createParser, type EventSourceMessage } from "eventsource-parser";

export interface Outgoing {
	readonly method: string;
	/** Default: `/mcp`. */
	readonly path?: string;
	readonly headers?: Readonly<Record<string, string | string[]>>;
	readonly body?: string | Uint8Array;
}

/** An HTTP request on a connection of its own, and all that has come back. */
export interface Exchange {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	/** Server-sent events so far, in order. */
	readonly events: readonly EventSourceMessage[];
	/** What a client's `Last-Event-ID` would be. */
	readonly cursor: string | undefined;
	/** What has come over the connection so far, byte by byte: head, chunks and all. */
	readonly bytes: Buffer;
	/** The whole body; rejects if the connection broke. */
	text(): Promise<string>;
	/** Resolves when there are so many server-sent events; rejects if the stream closes before. */
	count(events: number): Promise<void>;
	/** How the response ended: `cut` is a connection that broke. */
	readonly closed: Promise<"ended" | "cut">;
	/** Breaks the connection, as a network does. */
	drop(): Promise<void>;
	/** Stops and goes on reading. */
	pause(): void;
	resume(): void;
}

/** Sends a request; resolves when the head of the response is there. */
export async function send(
	origin: string,
	{ method, path = "/mcp", headers = {}, body }: Outgoing,
): Promise<Exchange> {
	const agent = new Agent();
	const outgoing = request(`${origin}${path}`, { method, headers, agent });
	const received: Buffer[] = [];
	outgoing.once("socket", (socket) => socket.on("data", (chunk: Buffer) => received.push(chunk)));
	// A server may answer before it has read everything.
	const answered = once(outgoing, "response");
	outgoing.end(body);
	const [incoming] = (await answered) as [IncomingMessage];
	outgoing.on("error", () => {});

	const events: EventSourceMessage[] = [];
	const waiting = new Set<() => void>();
	const changed = () => {
		for (const look of waiting) look();
	};
	let isClosed = false;
	let text = "";
	const parser = createParser({ onEvent: (event) => void events.push(event) });
	incoming.setEncoding("utf8");
	incoming.on("data", (chunk: string) => {
		text += chunk;
		if (incoming.headers["content-type"]?.startsWith("text/event-stream")) parser.feed(chunk);
		changed();
	});
	incoming.on("error", () => {});
	const closed = new Promise<"ended" | "cut">((resolve) => {
		incoming.once("close", () => {
			isClosed = true;
			resolve(incoming.complete ? "ended" : "cut");
			changed();
		});
	});

	return {
		status: incoming.statusCode ?? 0,
		headers: incoming.headers,
		events,
		get cursor() {
			return events.findLast(({ id }) => id !== undefined)?.id;
		},
		get bytes() {
			return Buffer.concat(received);
		},
		async text() {
			if ((await closed) === "cut") throw new Error(`the connection broke after ${JSON.stringify(text)}`);
			return text;
		},
		count: (wanted) =>
			new Promise<void>((resolve, reject) => {
				const look = () => {
					if (events.length < wanted && !isClosed) return;
					waiting.delete(look);
					if (events.length >= wanted) resolve();
					else
						reject(new Error(`closed after ${events.length} of ${wanted} events: ${JSON.stringify(text)}`));
				};
				waiting.add(look);
				look();
			}),
		closed,
		async drop() {
			outgoing.destroy();
			await closed;
		},
		pause: () => void incoming.pause(),
		resume: () => void incoming.resume(),
	};
}
