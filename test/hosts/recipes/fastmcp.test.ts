import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { createGates, type Gates } from "../../../examples/fastify/gates.ts";
import { freePort } from "../../../examples/fastify/port.ts";
import { createFastMcpHost, type Definition } from "../../../examples/fastmcp/host.ts";
import { startFastMcp } from "../../../examples/fastmcp/inside.ts";
import { call, headersOf, initialize, openSession, told } from "../support/client.ts";
import { data, SEARCH, SERVER, token, tokens } from "../support/host.ts";
import { send } from "../support/http.ts";
import { listen, silent, stop } from "../support/listen.ts";
import { recipeSuite, type StartRecipe } from "./suite.ts";

beforeEach(() => {
	vi.spyOn(console, "log").mockReturnValue();
	vi.spyOn(console, "info").mockReturnValue();
	vi.spyOn(console, "warn").mockReturnValue();
});

function createTools(gates: Gates): Definition["tools"] {
	return [
		{ name: "search", execute: async () => "found" },
		{
			name: "whoami",
			async execute(_, { session }) {
				await gates.pass("", "turn");
				return String(session?.claims?.aud);
			},
		},
		{
			name: "log",
			async execute(_, { log }) {
				log.info("said");
				return "logged";
			},
		},
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

const startUnderTheGuard: StartRecipe = async (options, gates) => {
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
};

const startWithTheGuardInside: StartRecipe = async (options, gates) => {
	const port = await freePort();
	const server = await startFastMcp({ ...options, port }, (server) => server.addTools(createTools(gates)));
	return { origin: `http://127.0.0.1:${port}`, close: () => server.stop() };
};

recipeSuite("fastmcp under the guard", startUnderTheGuard, { announces: false });
recipeSuite("fastmcp with the guard inside", startWithTheGuardInside, {
	primes: false,
	announces: false,
	refusesInside: true,
});

test("fastmcp under the guard: a tool knows the token that it was called with", async () => {
	const gates = createGates();
	const { origin, close } = await startUnderTheGuard({ data, tokens }, gates);
	onTestFinished(close);
	const owner = await token();
	const client = await openSession(origin, owner);
	const called = await client.post(owner, call(7, "whoami"));
	await called.count(1);
	await (await client.post(await token({ aud: SEARCH }), call(8, "search"))).text();

	gates.open("", "turn");

	expect(await called.closed).toBe("ended");
	expect(told(called)).toEqual(["#1 cursor", `#2 7 = ${SERVER}`]);
});

describe("fastmcp with the guard inside", () => {
	async function run(): Promise<string> {
		const { origin, close } = await startWithTheGuardInside({ data, tokens }, createGates());
		onTestFinished(close);
		return origin;
	}

	test("opens no session of the legacy transport, whose messages nobody would be asked about", async () => {
		const origin = await run();
		const headers = { authorization: `Bearer ${await token()}` };

		expect((await send(origin, { method: "GET", path: "/sse", headers })).status).toBe(404);
	});

	test("answers no browser", async () => {
		const origin = await run();
		const headers = { ...headersOf(await token()), origin: "https://app.example" };

		const refused = await send(origin, { method: "POST", headers, body: JSON.stringify(initialize()) });

		expect(refused.status).toBe(403);
	});

	test("what the server sends of its own has no id to resume from", async () => {
		const origin = await run();
		const owner = await token();
		const client = await openSession(origin, owner);
		const listening = await client.get(owner);
		await client.post(owner, call(7, "log"));
		await listening.count(1);

		expect(told(listening)).toEqual(["- notifications/message"]);
	});

	test("replays no prefix", async () => {
		const refused = startWithTheGuardInside({ data: { ...data, replay: "prefix" }, tokens }, createGates());

		await expect(refused).rejects.toThrow("`replay` must be");
	});
});
