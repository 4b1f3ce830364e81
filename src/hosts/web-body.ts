import { createListeners } from "../listeners.ts";
import type { ServerResponse as PostResponse } from "../resume/live.ts";
import type { Sink } from "../wire/answer.ts";

const encoder = new TextEncoder();
/** How long what has been written may be under way in the server, which gathers it, in milliseconds. */
const LINGER_MS = 20;

/** The body of a Response that is written as a stream. What is cut ends in an error, which servers turn into a broken connection. */
export function createBody(): { readable: ReadableStream<Uint8Array>; sink: Sink; writeBytes: WriteBytes } {
	const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
	const writer = writable.getWriter();
	const closing = createListeners<[]>();
	let isClosed = false;
	let isEnded = false;
	const close = () => {
		if (isClosed) return;
		isClosed = true;
		closing.tell();
	};
	writer.closed.then(close, close);

	const writeBytes: WriteBytes = async (bytes) => {
		if (isClosed) return;
		await writer.ready.catch(close);
		if (!isClosed) writer.write(bytes).catch(close);
	};
	const sink: Sink = {
		write: (text) => writeBytes(encoder.encode(text)),
		end() {
			isEnded = true;
			writer.close().catch(close);
		},
		cut() {
			if (isEnded) return;
			close();
			// What has been written goes out first: the client's cursor may be in it.
			setTimeout(() => void writer.abort(cutError()).catch(close), LINGER_MS).unref();
		},
		isOpen: () => !isClosed && !isEnded,
		onClose(listener) {
			if (isClosed) listener();
			else closing.add(listener);
		},
	};
	return { readable, sink, writeBytes };
}

// With the code that Node gives to streams that end early: a server that knows it does not log a stack for each.
function cutError(): Error {
	return Object.assign(new Error("cut by mcp-resume-guard"), { code: "ERR_STREAM_PREMATURE_CLOSE" });
}

type WriteBytes = (bytes: Uint8Array) => Promise<void>;

/** The response to a POST, which the MCP server writes as a Response of its own: `pipe` that one's body here. */
export function guardedBody(): {
	readable: ReadableStream<Uint8Array>;
	response: PostResponse;
	/** Resolves with whether the body has gone out whole. */
	pipe: (body: ReadableStream<Uint8Array> | null) => Promise<boolean>;
} {
	const { readable, sink, writeBytes } = createBody();
	return {
		readable,
		response: {
			isOpen: sink.isOpen,
			cut: sink.cut,
			finish(text) {
				void sink.write(text).then(sink.end);
			},
			onClose: sink.onClose,
		},
		async pipe(body) {
			if (body === null) {
				sink.end();
				return true;
			}
			const reader = body.getReader();
			sink.onClose(() => void reader.cancel().catch(() => undefined));
			try {
				for (;;) {
					const { done, value } = await reader.read();
					if (!sink.isOpen()) return false;
					if (done) break;
					await writeBytes(value);
				}
				sink.end();
				return true;
			} catch {
				sink.cut();
				return false;
			}
		},
	};
}
