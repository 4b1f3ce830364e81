import { createMemorySessionStore } from "mcp-resume-guard";
import { expect, test, vi } from "vitest";
import type { Connect } from "../../../src/hosts/own-transport.ts";
import { call, clientOf, headersOf, initialize, openSession, told } from "../support/client.ts";
import { type Host, run, type StartHost, token } from "../support/host.ts";
import { send } from "../support/http.ts";
import { createObservedLog } from "../support/log.ts";

/** Starts a host whose guard connects MCP servers itself. */
export type StartConnected = (options: Parameters<StartHost>[0], connect: Connect) => Promise<Host>;

/** A guard that connects MCP servers on a transport of its own. */
export function connectTests(start: StartConnected): void {
	const startOwn: StartHost = (options, createServer) =>
		start(options, (transport) => createServer().connect(transport));
	const post = (origin: string, headers: Record<string, string>, message: object) =>
		send(origin, { method: "POST", headers, body: JSON.stringify(message) });

	test("a tool sees the request that it is called by", async () => {
		const host = await run(startOwn);
		const bearer = await token();
		const client = await host.open(bearer);

		const posted = await post(
			host.origin,
			{ ...headersOf(bearer, client.session), "x-trace": "abc" },
			call(7, "whence"),
		);

		expect(await posted.closed).toBe("ended");
		expect(told(posted)).toEqual(["#1 cursor", `#2 7 = POST ${host.origin}/mcp abc`]);
	});

	test.each([
		["throws", () => Promise.reject(new Error("no server today"))],
		["connects nothing", () => undefined],
	])("a `connect` that %s leaves no session, and the next may open one", async (_, failing) => {
		const log = createObservedLog();
		let isFailing = true;
		const sessions: string[] = [];
		const host = await run(
			(options, createServer) =>
				start(options, (transport) => {
					sessions.push(transport.sessionId);
					return isFailing ? failing() : createServer().connect(transport);
				}),
			{ log },
		);
		const bearer = await token();

		const refused = await post(host.origin, headersOf(bearer), initialize());
		isFailing = false;
		const opened = await openSession(host.origin, bearer);

		expect(refused.status).toBe(500);
		expect(refused.headers["mcp-session-id"]).toBeUndefined();
		const asked = await clientOf(host.origin, sessions[0] ?? "").get(bearer);
		expect(asked.status).toBe(404);
		expect(sessions).toEqual([expect.any(String), opened.session]);
	});

	test("a session is initialized once, and the id of the second attempt is free", async () => {
		const host = await run(startOwn);
		const bearer = await token();
		const client = await host.open(bearer);

		const again = await client.post(bearer, { ...initialize(), id: 5 });
		const listed = await client.post(bearer, { jsonrpc: "2.0", id: 5, method: "tools/list" });

		expect([again.status, JSON.parse(await again.text()).error]).toEqual([
			400,
			{ code: -32600, message: "Invalid Request: Server already initialized" },
		]);
		expect([listed.status, await listed.closed]).toEqual([200, "ended"]);
	});

	test.each(["application/json", "text/event-stream", "*/*", ""])(
		"a POST that accepts %j alone is 406, and opens nothing",
		async (accept) => {
			const host = await run(startOwn);
			const bearer = await token();

			const refused = await post(host.origin, { ...headersOf(bearer), accept }, initialize());

			expect(refused.status).toBe(406);
			expect(refused.headers["mcp-session-id"]).toBeUndefined();
		},
	);

	test("a revision that is not spoken is 400, but for `initialize`, which negotiates it", async () => {
		const host = await run(startOwn);
		const bearer = await token();
		const headers = { ...headersOf(bearer), "mcp-protocol-version": "1999-01-01" };

		const opened = await post(host.origin, headers, initialize("1999-01-01"));
		const client = clientOf(host.origin, String(opened.headers["mcp-session-id"]), "1999-01-01");
		const refused = await client.post(bearer, { jsonrpc: "2.0", id: 1, method: "tools/list" });

		expect([opened.status, await opened.closed]).toEqual([200, "ended"]);
		expect(JSON.parse(opened.events.at(-1)?.data ?? "")).toMatchObject({
			result: { protocolVersion: expect.stringMatching(/^20/) },
		});
		expect([refused.status, JSON.parse(await refused.text()).error.message]).toEqual([
			400,
			"Bad Request: Unsupported protocol version",
		]);
	});

	test("a session that another machine runs is not found, and its request ids stay free", async () => {
		const shared = { sessions: createMemorySessionStore(), log: createObservedLog() };
		const [here, there] = [await run(startOwn, shared), await run(startOwn, shared)];
		const bearer = await token();
		const client = await here.open(bearer);

		const astray = await clientOf(there.origin, client.session).post(bearer, call(7, "whoami"));
		const arrived = await client.post(bearer, call(7, "whoami"));

		expect([astray.status, JSON.parse(await astray.text()).error]).toEqual([
			404,
			{ code: -32001, message: "Session not found" },
		]);
		expect([arrived.status, await arrived.closed]).toEqual([200, "ended"]);
	});

	test.each(["closeSSE", "closeStandaloneSSE"] as const)(
		"a tool that calls %s lets a stream go, and a resume has the rest",
		async (closer) => {
			const host = await run(startOwn);
			const bearer = await token();
			const client = await host.open(bearer);
			const standalone = await client.get(bearer);
			await standalone.count(1);

			const posted = await client.post(bearer, call(7, "poll", { closer, gate: "later" }));
			const released = closer === "closeSSE" ? posted : standalone;

			expect(await released.closed).toBe("ended");
			host.gates.open(client.session, "later");
			const whole = closer === "closeSSE" ? await client.get(bearer, posted.cursor) : posted;
			expect(await whole.closed).toBe("ended");
			expect(told(whole).at(-1)).toBe("#2 7 = polled");
			if (closer === "closeStandaloneSSE") expect((await client.get(bearer)).status).toBe(200);
		},
	);

	test("a client that could not come back is given no way to be sent away", async () => {
		const host = await run(startOwn);
		const bearer = await token();
		const client = await openSession(host.origin, bearer, "2025-06-18");

		const posted = await client.post(bearer, call(7, "poll", { closer: "closeSSE", gate: "" }));

		expect(await posted.closed).toBe("ended");
		expect(told(posted)).toEqual(["#2 7 = no closeSSE"]);
	});

	test("what is notified for a call that has ended goes nowhere, and breaks nothing", async () => {
		const host = await run(startOwn);
		const bearer = await token();
		const client = await host.open(bearer);
		const fetched = await client.post(bearer, call(1, "fetch", { id: "1" }));
		await fetched.closed;
		const own = await client.get(bearer);
		await own.count(1);

		const posted = await client.post(bearer, call(7, "straggle"));

		expect(await posted.closed).toBe("ended");
		expect(told(posted)).toEqual(["#1 cursor", "#2 7 = sent"]);
		expect(told(own)).toEqual(["#1 cursor"]);
	});

	test.each([
		["no params", undefined],
		["nothing in its params", {}],
		["a revision alone", { protocolVersion: "2025-11-25" }],
	])(
		"an `initialize` with %s is answered with the server's error, and leaves no session",
		async (_, params) => {
			const host = await run(startOwn);
			const bearer = await token();

			const answered = await post(host.origin, headersOf(bearer), {
				...initialize(),
				params: params ?? undefined,
			});
			expect(await answered.closed).toBe("ended");
			const client = clientOf(host.origin, String(answered.headers["mcp-session-id"]));

			expect(JSON.parse(answered.events.at(-1)?.data ?? "")).toMatchObject({ id: 0, error: {} });
			await vi.waitFor(async () => expect((await client.get(bearer)).status).toBe(404));
		},
	);
}
