import type { ServerResponse } from "node:http";
import type { ServerResponse as PostResponse } from "../resume/live.ts";
import type { Answer, Sink, WholeAnswer } from "../wire/answer.ts";

/** Writes an answer to a response of node:http; resolves when it has been ended or cut. */
export async function writeAnswer(response: ServerResponse, answer: Answer): Promise<void> {
	if (!("stream" in answer)) return writeWhole(response, answer);
	response.writeHead(answer.status, answer.headers);
	const sink = sinkOf(response);
	try {
		const streaming = answer.stream(sink);
		// The head goes with the first bytes, if there are any by now: one packet, and one call of the system, less.
		setImmediate(() => isOpen(response) && response.flushHeaders());
		await streaming;
	} catch (error) {
		// What fails in the middle must not look like an end.
		sink.cut();
		throw error;
	}
}

function writeWhole(response: ServerResponse, { status, headers, body }: WholeAnswer): void {
	// RFC 9110 section 8.6: not with 204.
	const length = status === 204 ? {} : { "content-length": Buffer.byteLength(body) };
	response.writeHead(status, { ...headers, ...length });
	response.end(body);
}

function sinkOf(response: ServerResponse): Sink {
	let isCut = false;
	const mayWrite = () => !isCut && isOpen(response);
	// A client that leaves while bytes are under way is no fault.
	response.on("error", () => response.destroy());
	return {
		async write(text) {
			if (!mayWrite() || response.write(text)) return;
			await new Promise<void>((resolve) => {
				const done = () => {
					response.off("drain", done).off("close", done);
					resolve();
				};
				response.on("drain", done).on("close", done);
			});
		},
		end: () => void response.end(),
		cut() {
			if (response.writableEnded) return;
			isCut = true;
			// What has been written goes out first: the client's cursor may be in it.
			setImmediate(() => response.destroy());
		},
		isOpen: mayWrite,
		onClose: (listener) => onClose(response, listener),
	};
}

function isOpen({ closed, destroyed, writableEnded }: ServerResponse): boolean {
	return !closed && !destroyed && !writableEnded;
}

function onClose(response: ServerResponse, listener: () => void): void {
	if (response.closed) listener();
	else response.once("close", listener);
}

/** The response to a POST, which the MCP server writes. */
export function postResponseOf(response: ServerResponse): PostResponse {
	return {
		isOpen: () => isOpen(response),
		cut: () => void response.destroy(),
		finish(text) {
			if (response.headersSent) response.end(text);
			else response.destroy();
		},
		onClose: (listener) => onClose(response, listener),
	};
}
