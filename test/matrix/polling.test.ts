import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createRecorder } from "../../examples/demo/recorder.ts";
import { connectClient } from "./clients.ts";
import { startHost } from "./host.ts";
import type { Sdk, TransportKind } from "./servers.ts";
import { mint } from "./tokens.ts";

const sdks: readonly Sdk[] = ["v1", "v2"];
const transports: readonly TransportKind[] = ["sdk", "own"];
const pairs = transports.flatMap((transport) =>
	sdks.flatMap((server) => sdks.map((client) => ({ transport, server, client }))),
);

/** Time in which a client that polls has come back several times. */
const A_WHILE = 600;

describe.each(pairs)("a $client client of a $server server on its '$transport' transport", (pair) => {
	test("comes back no more than once for a call that it has cancelled", async () => {
		const host = await startHost(pair);
		const recorder = createRecorder(await mint("wide"));
		const url = new URL(`http://127.0.0.1:${host.port}/mcp`);
		const client = await connectClient(pair.client, url, recorder);
		try {
			await recorder.until(() =>
				recorder.exchanges.some(({ method, text }) => method === "GET" && text !== ""),
			);
			const since = recorder.exchanges.length;
			const controller = new AbortController();
			const ending = client.call("fetch", "a", { signal: controller.signal });
			await host.calls.running("a");
			controller.abort();
			expect(await ending).toHaveProperty("error");
			await sleep(A_WHILE);

			const gets = recorder.exchanges.slice(since).filter(({ method }) => method === "GET");
			expect(gets.length).toBeLessThanOrEqual(1);
			expect(gets.map(({ status }) => status)).toEqual(gets.map(() => 204));
			expect(client.errors).toEqual([]);
		} finally {
			await client.close();
			await host.close();
		}
	});
});
