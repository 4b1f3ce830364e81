import { expect } from "vitest";
import { messagesOn, streamOf } from "../../../examples/demo/events.ts";
import type { TestClient } from "./client.ts";
import type { Host } from "./host.ts";

/** What the client was sent of the stream that the cursor is of is what the host has stored for it: once, in order. */
export function expectAllOnce(host: Host, client: TestClient, cursor: string): void {
	const stream = streamOf(cursor);
	const stored = messagesOn(stream, host.emitted).map(({ id }) => id);
	expect(stored.length).toBeGreaterThan(0);
	expect(client.delivered(stream)).toEqual(stored);
}

/** No byte of it came to the client under that token. */
export function expectNothingOf(secret: string, client: TestClient, token: string): void {
	const under = client.recorder.exchanges.filter((exchange) => exchange.token === token);
	expect(under.length).toBeGreaterThan(0);
	expect(under.filter(({ text }) => text.includes(secret))).toEqual([]);
}
