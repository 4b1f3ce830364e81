import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { ServerResponse as PostResponse } from "../resume/live.ts";
import type { Answer, Sink, WholeAnswer } from "../wire/answer.ts";

/** Writes an answer to a response of node:http; resolves when it has been ended or cut. */
export async function writeAnswer(response: ServerResponse, answer: Answer): Promise<void> {
	if (!("stream" in answer)) return writeWhole(response, answer);
	response.writeHead(answer.status, answer.headers);
	response.flushHeaders();
	const sink = sinkOf(response);
	try {
		await answer.stream(sink);
	} catch (error) {
		// What fails in the middle must not look like an end.
		sink.cut();
		throw error;
	}
}

function writeWhole(response: ServerResponse, { status, headers, body }: WholeAnswer): void {
	response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
	response.end(body);
}

function sinkOf(response: ServerResponse): Sink {
	const closed = new AbortController();
	if (response.closed || response.destroyed) closed.abort();
	response.once("close", () => closed.abort());
	// A client that leaves while bytes are under way is no fault.
	response.on("error", () => closed.abort());
	return {
		async write(text) {
			if (closed.signal.aborted || response.writableEnded) return;
			if (response.write(text)) return;
			await once(response, "drain", { signal: closed.signal }).catch(() => undefined);
		},
		end: () => void response.end(),
		cut: () => void response.destroy(),
		closed: closed.signal,
	};
}

/** The response to a POST, which the MCP server writes. */
export function postResponseOf(response: ServerResponse): PostResponse {
	return {
		isOpen: () => !response.closed && !response.destroyed && !response.writableEnded,
		cut: () => void response.destroy(),
		finish(text) {
			if (response.headersSent) response.end(text);
			else response.destroy();
		},
		onClose: (listener) => void (response.closed ? listener() : response.once("close", listener)),
	};
}
