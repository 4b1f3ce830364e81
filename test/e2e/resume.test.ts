import { describe, expect, test } from "vitest";
import { streamOf } from "../../examples/demo/events.ts";
import { connect, dropAndReturn, versions } from "./support/client.ts";
import { expectAllOnce } from "./support/expect.ts";
import { numbersOf, startHost } from "./support/host.ts";

const query = { query: "x", pages: 8, gate: "rest", gate_after: 3 };
const found = "8 pages about x";
const upTo8 = [1, 2, 3, 4, 5, 6, 7, 8];

describe.each(versions)("a client of SDK %s", (version) => {
	test("has every event once and in order when its stream drops in the middle", async () => {
		const host = await startHost();
		const client = await connect(version, host);
		const call = client.call("search", query);
		await client.has(call, 4);
		await host.drop(client.session);
		await host.open(client.session, "rest");

		expect(await call.ending).toMatchObject({ text: found });
		expect(call.progress).toEqual(upTo8);
		expectAllOnce(host, client, call.cursor);
		expect(numbersOf(client.delivered(streamOf(call.cursor)))).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
	});

	test("has them when the stream drops before its first event", async () => {
		const host = await startHost();
		const client = await connect(version, host);
		const call = client.call("search", { ...query, gate_after: 0 });
		await client.has(call, 1);
		await host.drop(client.session);
		await host.open(client.session, "rest");

		expect(await call.ending).toMatchObject({ text: found });
		expect(call.progress).toEqual(upTo8);
		expectAllOnce(host, client, call.cursor);
	});

	test("has them when the stream drops again, and again, before a new event", async () => {
		const host = await startHost();
		const client = await connect(version, host);
		const call = client.call("search", query);
		await client.has(call, 4);
		for (let drop = 0; drop < 3; drop++) {
			const { length } = client.recorder.exchanges;
			await host.drop(client.session);
			const resumed = await client.recorder.exchange(
				(exchange) => exchange.lastEventId === call.cursor,
				length,
			);
			await client.recorder.until(() => resumed.text.includes(`id: ${call.cursor}\n`));
			expect(resumed.status).toBe(200);
		}
		await host.open(client.session, "rest");

		expect(await call.ending).toMatchObject({ text: found });
		expect(call.progress).toEqual(upTo8);
		expectAllOnce(host, client, call.cursor);
	});

	test("has a result that came while nobody listened", async () => {
		const host = await startHost();
		const client = await connect(version, host);
		const call = client.call("fetch", { id: "a", gate: "text" });
		await client.has(call, 1);
		await dropAndReturn(host, client, await host.mint(), async () => {
			await host.open(client.session, "text");
			await host.stored(({ tool }) => tool === "fetch");
		});

		expect(await call.ending).toMatchObject({ text: "the text of document a" });
		expectAllOnce(host, client, call.cursor);
	});

	test("goes on under a refreshed token, and is cut off and told when its token expires", async () => {
		const host = await startHost({ data: { clock_skew: 0 } });
		const inTwoSeconds = Math.floor(Date.now() / 1000) + 2;
		const client = await connect(version, host, { token: await host.mint({ exp: inTwoSeconds }) });
		const call = client.call("search", query);
		await client.has(call, 4);
		const post = client.recorder.exchanges.at(-1);
		client.recorder.line = "down";
		await client.recorder.until(() => post?.end !== "open");
		expect(post?.end).toBe("cut");
		expect(Date.now() / 1000).toBeGreaterThanOrEqual(inTwoSeconds);
		client.recorder.token = await host.mint();
		client.recorder.line = "up";
		await host.open(client.session, "rest");

		expect(await call.ending).toMatchObject({ text: found });
		expect(call.progress).toEqual(upTo8);
		expectAllOnce(host, client, call.cursor);
	});
});
