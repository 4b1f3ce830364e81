import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../reload/support.ts";
import { call, headersOf, type RawClient, told } from "../support/client.ts";
import { data, type RunOptions, run, SERVER, type StartHost, token } from "../support/host.ts";
import type { Exchange } from "../support/http.ts";
import { createObservedLog } from "../support/log.ts";

const MIB = 1024 * 1024;
const owl = call(7, "fetch", { id: "owl", gate: "turn" });

export function streamTests(start: StartHost): void {
	test("a token that expires takes its open streams with it, and no clean end", async () => {
		const host = await run(start, { data: { clock_skew: 0 } });
		const wide = await token();
		const client = await host.open(wide);
		const dropped = await client.post(wide, { ...owl, id: 6 });
		await dropped.count(1);
		await host.drop(client, dropped);
		const brief = await token({ exp: Date.now() / 1000 + 1 });

		const posted = await client.post(brief, owl);
		const resumed = await client.get(brief, dropped.cursor);
		const fetched = await fetch(`${host.origin}/mcp`, { headers: headersOf(brief, client.session) });

		expect([posted.status, resumed.status, fetched.status]).toEqual([200, 200, 200]);
		await expect(fetched.text()).rejects.toThrow("terminated");
		expect(await posted.closed).toBe("cut");
		expect(await resumed.closed).toBe("cut");
		expect([told(posted), told(resumed)]).toEqual([["#1 cursor"], ["#1 cursor"]]);

		expect((await client.get(brief, posted.cursor)).status).toBe(401);
		host.gates.open(client.session, "turn");
		const again = await client.get(wide, posted.cursor);
		expect(await again.closed).toBe("ended");
		expect(told(again)).toEqual(["#1 cursor", "#2 7 = the text of document owl"]);
	});

	test("the server closes while streams are open, and they have no clean end", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const dropped = await client.post(wide, { ...owl, id: 6 });
		await dropped.count(1);
		await dropped.drop();
		const streams = [
			await client.post(wide, owl),
			await client.get(wide),
			await client.get(wide, dropped.cursor),
		];
		await Promise.all(streams.map((stream) => stream.count(1)));

		await host.close();

		expect(await Promise.all(streams.map(({ closed }) => closed))).toEqual(["cut", "cut", "cut"]);
	});

	test("a mistake in data cuts a stream and ends no session: mended, it goes on", async () => {
		const dataFile = join(temporaryFolder(), "data.json");
		const host = await run(start, { dataFile });
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, owl);
		await posted.count(1);

		writeFileSync(
			dataFile,
			JSON.stringify({ ...data, resources: ["https://elsewhere.example"], coverage: {} }),
		);
		expect(await posted.closed).toBe("cut");
		writeFileSync(dataFile, JSON.stringify(data));
		await expect.poll(async () => (await client.post(wide, { ...owl, id: 8 })).status).toBe(200);

		host.gates.open(client.session, "turn");
		const resumed = await client.get(wide, posted.cursor);
		expect(await resumed.closed).toBe("ended");
		expect(told(resumed)).toEqual(["#1 cursor", "#2 7 = the text of document owl"]);
	});

	describe("a slow reader", () => {
		const [count, size] = [120, 64 * 1024];

		/** A resume of a call with much to report, whose client does not read; and how much of it has been written. */
		async function stall({ claims = () => ({}), ...options }: RunOptions & { claims?: () => object } = {}) {
			const log = createObservedLog({ bytes: 256 * MIB, bytesPerPrincipal: 128 * MIB });
			const host = await run(start, { ...options, log });
			const wide = await token();
			const client = await host.open(wide);
			const posted = await client.post(wide, call(7, "bulk", { count, size }));
			await posted.count(1);
			const first = posted.events[0]?.id;
			await host.drop(client, posted);
			await log.appended("120 done");
			const before = log.written;
			const resumed = await client.get(await token({ ...claims() }), first);
			resumed.pause();
			const written = await settled(() => log.written - before);
			return { client, wide, resumed, written };
		}

		test("loses nothing, and makes nobody hold for it what the log holds already", async () => {
			const { resumed, written } = await stall();
			expect(written).toBeLessThan(100);

			resumed.resume();

			expect(await resumed.closed).toBe("ended");
			expect(told(resumed).map((line) => line.split(" ", 1)[0])).toEqual(
				Array.from({ length: count + 2 }, (_, index) => `#${index + 1}`),
			);
			expect(resumed.events.slice(1, -1).every(({ data }) => data.length > size)).toBe(true);
			expect(told(resumed).at(-1)).toBe("#122 7 = 120 done");
		});

		test("gets nothing more of a session that has ended", async () => {
			const { client, wide, resumed, written } = await stall();

			expect((await client.delete(wide)).status).toBe(204);
			resumed.resume();

			expect(await resumed.closed).toBe("cut");
			// The first is the cursor.
			expect(resumed.events.length).toBeLessThanOrEqual(written + 1);
		});

		test("gets nothing more once its token has expired, and the rest under another one", async () => {
			let exp = 0;
			const claims = () => {
				exp = Date.now() / 1000 + 2;
				return { exp };
			};
			const { client, wide, resumed, written } = await stall({ data: { clock_skew: 0 }, claims });

			await sleep(exp * 1000 - Date.now() + 50);
			resumed.resume();

			expect(await resumed.closed).toBe("cut");
			expect(resumed.events.length).toBeLessThanOrEqual(written + 1);
			await expectRest(client, wide, resumed);
		});

		test("gets nothing more that data holds back which has come into force meanwhile", async () => {
			const dataFile = join(temporaryFolder(), "data.json");
			const { client, wide, resumed, written } = await stall({ dataFile });
			const bulk = { aud: [`${SERVER}/bulk`], scope: [] };

			writeFileSync(dataFile, JSON.stringify({ ...data, tools: { ...data.tools, bulk } }));
			await expect.poll(async () => (await client.post(wide, call(8, "bulk"))).status).toBe(403);
			resumed.resume();

			expect(await resumed.closed).toBe("cut");
			expect(resumed.events.length).toBeLessThanOrEqual(written + 1);
			const refused = await client.get(wide, resumed.cursor);
			expect(refused.status).toBe(403);
			expect(await refused.text()).toContain(`${SERVER}/bulk`);
			await expectRest(client, await token({ aud: [SERVER, `${SERVER}/bulk`] }), resumed);
		});

		/** What has not come is all there, from where the client was. */
		async function expectRest(client: RawClient, covering: string, { events, cursor }: Exchange) {
			const rest = await client.get(covering, cursor);
			expect(await rest.closed).toBe("ended");
			expect(events.length + rest.events.length).toBe(count + 3);
			expect(told(rest).at(-1)).toBe("#122 7 = 120 done");
		}
	});
}

/** A number, once it has not grown for a while. */
async function settled(read: () => number): Promise<number> {
	for (;;) {
		const before = read();
		await new Promise((resolve) => setTimeout(resolve, 250));
		if (before > 0 && read() === before) return before;
	}
}
