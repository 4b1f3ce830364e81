/** One block of an SSE stream, up to its blank line. */
export interface ServerEvent {
	/** `""`: not said, which is a message. */
	readonly type: string;
	/** `undefined`: it has none, and is not an event (HTML Living Standard section 9.2.6). */
	readonly data: string | undefined;
	/** `undefined`: none, or an empty one. */
	readonly id: string | undefined;
	/** Milliseconds. */
	readonly retry: number | undefined;
}

/**
 * Reads an SSE stream (HTML Living Standard section 9.2). A block that the stream ends in is dropped.
 * Rejects if the connection breaks; when the reader leaves, the stream is cancelled.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void> {
	let block: string[] = [];
	for await (const line of readLines(body)) {
		if (line !== "") {
			block.push(line);
			continue;
		}
		if (block.length > 0) yield eventOf(block);
		block = [];
	}
}

function eventOf(lines: readonly string[]): ServerEvent {
	const data: string[] = [];
	let type = "";
	let id: string | undefined;
	let retry: number | undefined;
	for (const line of lines) {
		const { 1: field, 2: value = "" } = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
		if (field === "data") data.push(value);
		else if (field === "event") type = value;
		else if (field === "id" && value !== "" && !value.includes("\0")) id = value;
		else if (field === "retry" && /^\d+$/.test(value)) retry = Number(value);
	}
	return { type, data: data.length > 0 ? data.join("\n") : undefined, id, retry };
}

async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
	const reader = body.getReader();
	const decoder = new TextDecoder();
	// A carriage return at the very end may be the first half of a line end.
	const lineEnd = /\r\n|\n|\r(?!$)/g;
	let text = "";
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			// What has been looked through is not looked through again.
			lineEnd.lastIndex = Math.max(0, text.length - 1);
			text += decoder.decode(value, { stream: true });
			let start = 0;
			for (let end = lineEnd.exec(text); end !== null; end = lineEnd.exec(text)) {
				yield text.slice(start, end.index);
				start = lineEnd.lastIndex;
			}
			text = text.slice(start);
		}
	} finally {
		await reader.cancel().catch(() => undefined);
	}
}
