import { once } from "node:events";
import { serve } from "@hono/node-server";
import { beforeEach, vi } from "vitest";
import { createHonoHost } from "../../examples/hono/host.ts";
import { hostSuite } from "./suite.ts";
import type { StartHost } from "./support/host.ts";
import { originOf, silent, stop } from "./support/listen.ts";

const start: StartHost = async (options, createServer) => {
	const { app, guard } = await createHonoHost({ ...options, logger: silent }, createServer);
	const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
	await once(server, "listening");
	return {
		origin: originOf(server),
		endSessions: guard.endSessions,
		async close() {
			await guard.close();
			await stop(server);
		},
	};
};

beforeEach(() => {
	// node-server has a line for each stream that is cut, Hono for each error.
	vi.spyOn(console, "info").mockReturnValue();
	vi.spyOn(console, "error").mockReturnValue();
});

hostSuite("Hono", start);
