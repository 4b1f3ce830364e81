import type { ServerResponse as PostResponse } from "../resume/live.ts";
import type { Sink } from "../wire/answer.ts";

const encoder = new TextEncoder();

/** The body of a Response that is written as a stream. What is cut ends in an error, which servers turn into a broken connection. */
export function createBody(): { readable: ReadableStream<Uint8Array>; sink: Sink; writeBytes: WriteBytes } {
	const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
	const writer = writable.getWriter();
	const closed = new AbortController();
	const close = () => closed.abort();
	writer.closed.then(close, close);

	const writeBytes: WriteBytes = async (bytes) => {
		if (closed.signal.aborted) return;
		await writer.ready.catch(close);
		if (!closed.signal.aborted) writer.write(bytes).catch(close);
	};
	const sink: Sink = {
		write: (text) => writeBytes(encoder.encode(text)),
		end: () => void writer.close().catch(close),
		cut() {
			close();
			void writer.abort(cutError()).catch(close);
		},
		closed: closed.signal,
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
	let ended = false;
	const end = () => {
		ended = true;
		sink.end();
	};
	const isOpen = () => !ended && !sink.closed.aborted;

	return {
		readable,
		response: {
			isOpen,
			cut: sink.cut,
			finish(text) {
				void sink.write(text).then(end);
			},
			onClose(listener) {
				if (sink.closed.aborted) listener();
				else sink.closed.addEventListener("abort", listener, { once: true });
			},
		},
		async pipe(body) {
			if (body === null) {
				end();
				return true;
			}
			const reader = body.getReader();
			sink.closed.addEventListener("abort", () => void reader.cancel().catch(() => undefined));
			try {
				for (;;) {
					const { done, value } = await reader.read();
					if (!isOpen()) return false;
					if (done) break;
					await writeBytes(value);
				}
				end();
				return true;
			} catch {
				sink.cut();
				return false;
			}
		},
	};
}
