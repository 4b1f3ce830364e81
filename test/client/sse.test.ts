import { expect, test } from "vitest";
import { readEvents, type ServerEvent } from "../../src/client/sse.ts";

const event = (given: Partial<ServerEvent>): ServerEvent => ({
	type: "",
	data: undefined,
	id: undefined,
	retry: undefined,
	...given,
});

const cases: readonly [name: string, text: string, events: readonly ServerEvent[]][] = [
	["data", "data: a\n\n", [event({ data: "a" })]],
	[
		"a space after the colon is not data, a second one is",
		"data:a\n\ndata:  b\n\n",
		[event({ data: "a" }), event({ data: " b" })],
	],
	["several data lines", "data: a\ndata: b\n\n", [event({ data: "a\nb" })]],
	[
		"every field",
		"event: error\nid: 7\nretry: 10\ndata: a\n\n",
		[{ type: "error", id: "7", retry: 10, data: "a" }],
	],
	["an id with empty data", "id: 7\ndata: \n\n", [event({ id: "7", data: "" })]],
	["an id alone", "id: 7\n\n", [event({ id: "7" })]],
	["an empty id is none", "id:\ndata: a\n\n", [event({ data: "a" })]],
	["an id with a null is none", "id: a\0b\ndata: a\n\n", [event({ data: "a" })]],
	["a retry that is no number is none", "retry: 1s\ndata: a\n\n", [event({ data: "a" })]],
	[
		"comments and unknown fields are passed over",
		": hello\ndata: a\nfoo: b\nbar\n\n",
		[event({ data: "a" })],
	],
	["a field without a colon is empty", "data\n\n", [event({ data: "" })]],
	[
		"line ends of every kind",
		"data: a\r\n\r\ndata: b\r\rdata: c\n\n",
		["a", "b", "c"].map((data) => event({ data })),
	],
	["an event that is cut off is none", "data: a\n\ndata: b\n", [event({ data: "a" })]],
	["a byte order mark", "\uFEFFdata: a\n\n", [event({ data: "a" })]],
	["blank lines", "\n\n\ndata: a\n\n\n\n", [event({ data: "a" })]],
	["characters of several bytes", "data: ¡€𝄞\n\n", [event({ data: "¡€𝄞" })]],
];

test.each(cases)("%s", async (_, text, expected) => {
	const bytes = new TextEncoder().encode(text);
	for (const size of [1, 2, 3, bytes.length]) {
		const events = await collect(inChunks(bytes, size));
		expect(events.filter((event) => !isBlank(event))).toEqual(expected);
	}
});

test("a broken connection rejects", async () => {
	const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.error(new Error("cut")) });
	await expect(collect(body)).rejects.toThrow("cut");
});

test("a reader that leaves cancels the stream", async () => {
	let isCancelled = false;
	const body = new ReadableStream<Uint8Array>({
		pull: (controller) => controller.enqueue(new TextEncoder().encode("data: a\n\n")),
		cancel() {
			isCancelled = true;
		},
	});
	for await (const { data } of readEvents(body)) if (data === "a") break;
	expect(isCancelled).toBe(true);
});

async function collect(body: ReadableStream<Uint8Array>): Promise<ServerEvent[]> {
	const events: ServerEvent[] = [];
	for await (const event of readEvents(body)) events.push(event);
	return events;
}

function inChunks(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
	let at = 0;
	return new ReadableStream({
		pull(controller) {
			if (at >= bytes.length) return controller.close();
			controller.enqueue(bytes.slice(at, at + size));
			at += size;
		},
	});
}

function isBlank({ type, data, id, retry }: ServerEvent): boolean {
	return type === "" && data === undefined && id === undefined && retry === undefined;
}
