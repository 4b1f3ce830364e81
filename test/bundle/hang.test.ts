import { once } from "node:events";
import { createServer } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { download } from "../../src/bundle/http.ts";

test("a server that takes the connection and never answers is given up", async () => {
	const server = createServer(() => {}).listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => {
		vi.useRealTimers();
		server.closeAllConnections();
		server.close();
	});
	const address = server.address();
	if (address === null || typeof address === "string") throw new Error("no port");
	const asked = once(server, "request");
	vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
	const url = new URL(`http://127.0.0.1:${address.port}/bundle.tar.gz?secret`);
	const failed = expect(
		download({ url, headers: {} }, undefined, new AbortController().signal),
	).rejects.toMatchObject({
		code: "bundle_unavailable",
		message: expect.stringMatching(/no answer in time$/),
	});
	await asked;
	vi.advanceTimersByTime(30_000);
	await failed;
});

test("who stops looking is not kept waiting", async () => {
	const server = createServer(() => {}).listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => {
		server.closeAllConnections();
		server.close();
	});
	const address = server.address();
	if (address === null || typeof address === "string") throw new Error("no port");
	const stopping = new AbortController();
	const failed = download(
		{ url: new URL(`http://127.0.0.1:${address.port}/`), headers: {} },
		undefined,
		stopping.signal,
	);
	await once(server, "request");
	stopping.abort();
	await expect(failed).rejects.toMatchObject({ code: "bundle_unavailable" });
});
