import { createParser, type EventSourceMessage } from "eventsource-parser";

/** One HTTP request of a client. */
export interface Sent {
	readonly method: string;
	readonly lastEventId: string | undefined;
	/** The access token that it went out with. */
	readonly token: string;
}

/** A request with what has come back. */
export interface Exchange extends Sent {
	readonly status: number;
	readonly headers: Headers;
	/** The body so far, as it came. */
	text: string;
	/** `cut`: broken off by the network or the server; `left`: by the client. */
	end: "open" | "clean" | "cut" | "left";
}

/** A `fetch` for a client that can change its token and lose its line, and of which nothing stays unseen. */
export interface Recorder {
	readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
	readonly exchanges: readonly Exchange[];
	/** The token that further requests go out with. */
	token: string;
	/** Takes the line down or up: requests that are made while it is down wait. */
	line: "up" | "down";
	/** Resolves with the first exchange that matches, from the `since`th on, once its response has begun. */
	exchange(matches: (exchange: Exchange) => boolean, since?: number): Promise<Exchange>;
	/** Resolves when `condition` holds; it is looked at whenever something has come. */
	until(condition: () => boolean): Promise<void>;
}

export interface RecorderHooks {
	readonly onSend?: (sent: Sent) => void;
	/** The head of the response is there. */
	readonly onAnswer?: (exchange: Exchange) => void;
}

export function createRecorder(token: string, hooks: RecorderHooks = {}): Recorder {
	const exchanges: Exchange[] = [];
	const waiting = new Set<() => void>();
	const changed = () => {
		for (const look of [...waiting]) look();
	};
	let line: Recorder["line"] = "up";

	function until(condition: () => boolean): Promise<void> {
		return new Promise((resolve) => {
			const look = () => {
				if (!condition()) return;
				waiting.delete(look);
				resolve();
			};
			waiting.add(look);
			look();
		});
	}

	function recorded(body: ReadableStream<Uint8Array>, exchange: Exchange): ReadableStream<Uint8Array> {
		const reader = body.getReader();
		const decoder = new TextDecoder();
		const finish = (end: Exchange["end"]) => {
			exchange.end = end;
			// After whoever reads the stream has seen it.
			setImmediate(changed);
		};
		return new ReadableStream({
			async pull(controller) {
				try {
					const { done, value } = await reader.read();
					if (done) {
						controller.close();
						return finish("clean");
					}
					exchange.text += decoder.decode(value, { stream: true });
					controller.enqueue(value);
					setImmediate(changed);
				} catch (error) {
					controller.error(error);
					finish(exchange.end === "left" ? "left" : "cut");
				}
			},
			cancel(reason) {
				finish("left");
				return reader.cancel(reason);
			},
		});
	}

	const recorder: Recorder = {
		exchanges,
		token,
		get line() {
			return line;
		},
		set line(state) {
			line = state;
			changed();
		},
		until,
		async exchange(matches, since = 0) {
			let found: Exchange | undefined;
			await until(() => {
				found = exchanges.slice(since).find(matches);
				return found !== undefined;
			});
			return found as Exchange;
		},
		async fetch(input, init) {
			await until(() => line === "up");
			const headers = new Headers(init?.headers);
			const { token } = recorder;
			headers.set("authorization", `Bearer ${token}`);
			const sent = {
				method: init?.method ?? "GET",
				lastEventId: headers.get("last-event-id") ?? undefined,
				token,
			};
			hooks.onSend?.(sent);
			const response = await fetch(input, { ...init, headers });
			const exchange: Exchange = {
				...sent,
				status: response.status,
				headers: response.headers,
				text: "",
				end: response.body === null ? "clean" : "open",
			};
			exchanges.push(exchange);
			hooks.onAnswer?.(exchange);
			setImmediate(changed);
			const body = response.body === null ? null : recorded(response.body, exchange);
			return new Response(body, {
				status: response.status,
				statusText: response.statusText,
				headers: response.headers,
			});
		},
	};
	return recorder;
}

/** The server-sent events of a response body. */
export function framesOf(text: string): EventSourceMessage[] {
	const frames: EventSourceMessage[] = [];
	createParser({ onEvent: (frame) => frames.push(frame) }).feed(text);
	return frames;
}

/** The ids of the events that came with a message: what a client has been given. */
export function deliveredIn(exchanges: readonly Exchange[]): string[] {
	return exchanges.flatMap(({ text }) =>
		framesOf(text).flatMap(({ id, data }) => (id !== undefined && data !== "" ? [id] : [])),
	);
}
