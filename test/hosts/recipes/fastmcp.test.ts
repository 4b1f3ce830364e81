import { beforeEach, vi } from "vitest";
import { z } from "zod";
import type { Gates } from "../../../examples/fastify/gates.ts";
import { freePort } from "../../../examples/fastify/port.ts";
import { createFastMcpHost, type Definition } from "../../../examples/fastmcp/host.ts";
import { startFastMcp } from "../../../examples/fastmcp/inside.ts";
import { listen, silent, stop } from "../support/listen.ts";
import { recipeSuite } from "./suite.ts";

beforeEach(() => {
	vi.spyOn(console, "log").mockReturnValue();
	vi.spyOn(console, "info").mockReturnValue();
	vi.spyOn(console, "warn").mockReturnValue();
});

function createTools(gates: Gates): Definition["tools"] {
	return [
		{ name: "search", execute: async () => "found" },
		{
			name: "fetch",
			parameters: z.object({ id: z.string() }),
			async execute(args, { reportProgress }) {
				// FastMCP's types know what the client may send by `message`, too.
				await reportProgress({ progress: 1, message: "begun" } as never);
				await gates.pass("", "turn");
				return `the text of document ${(args as { id: string }).id}`;
			},
		},
	];
}

recipeSuite("fastmcp under the guard", async (options, gates) => {
	const { listener, guard } = await createFastMcpHost(
		{ ...options, logger: silent },
		{
			name: "fastmcp",
			version: "1.0.0",
			tools: createTools(gates),
			prompts: [],
			resources: [],
			resourcesTemplates: [],
			logger: { ...silent, log() {} },
		},
	);
	const { origin, server } = await listen(listener);
	return {
		origin,
		async close() {
			await guard.close();
			await stop(server);
		},
	};
});

recipeSuite(
	"fastmcp with the guard inside",
	async (options, gates) => {
		const port = await freePort();
		const server = await startFastMcp({ ...options, port }, (server) => server.addTools(createTools(gates)));
		return { origin: `http://127.0.0.1:${port}`, close: () => server.stop() };
	},
	{ primes: false, refusesInside: true },
);
