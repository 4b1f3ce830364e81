import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { connect, type TestClient, versions } from "./support/client.ts";
import { expectAllOnce } from "./support/expect.ts";
import { type Host, startHost } from "./support/host.ts";

const STEPS = 40;

/** Drops the client's streams again and again, at whatever moment it is, until its calls have ended. */
async function dropUntil(
	host: Host,
	{ session }: TestClient,
	calls: readonly Promise<unknown>[],
): Promise<void> {
	let isOver = false;
	void Promise.all(calls).then(() => {
		isOver = true;
	});
	while (!isOver) {
		await sleep(20 + Math.random() * 80);
		await host.drop(session);
	}
}

test("clients whose streams drop all the time have each event of each of their calls once, and in order", async () => {
	const host = await startHost();
	const runs = [...versions, ...versions, ...versions].map(async (version) => {
		const client = await connect(version, host, { delay: 5, maxRetries: 1_000 });
		const calls = [2, 3, 5].map((milliseconds) => client.call("slow", { steps: STEPS, milliseconds }));
		for (const call of calls) await client.has(call, 1);
		await dropUntil(
			host,
			client,
			calls.map(({ ending }) => ending),
		);
		for (const call of calls) {
			expect(await call.ending).toMatchObject({ text: `${STEPS} steps done` });
			expect(call.progress).toEqual(Array.from({ length: STEPS }, (_, index) => index + 1));
			expectAllOnce(host, client, call.cursor);
		}
	});
	await Promise.all(runs);
});

test("a thousand events that came while the client was away are sent at once", async () => {
	const host = await startHost();
	const client = await connect("v2", host);
	const call = client.call("search", { query: "x", pages: 1_000, gate: "rest" });
	await client.has(call, 1);
	client.recorder.line = "down";
	await host.drop(client.session);
	await host.open(client.session, "rest");
	await host.stored(({ id }) => id.endsWith(".1002"));
	client.recorder.line = "up";
	expect(await call.ending).toMatchObject({ text: "1000 pages about x" });
	expect(call.progress).toHaveLength(1_000);
	expectAllOnce(host, client, call.cursor);
});
