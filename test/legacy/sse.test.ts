import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { afterEach, expect, it } from "vitest";
import { type Example, type ExampleOptions, startExample } from "../../examples/fastify/host.ts";

interface Frame {
	readonly event: string | undefined;
	readonly id: string | undefined;
	readonly data: string;
}

const running: Example[] = [];

afterEach(async () => {
	await Promise.all(running.splice(0).map((example) => example.close()));
});

async function start(options: ExampleOptions = {}): Promise<Example> {
	const example = await startExample(options);
	running.push(example);
	return example;
}

function mint({ authorizationServer }: Example, aud: string, sub = "alice"): Promise<string> {
	return authorizationServer.mint({ sub, client_id: "cli", aud });
}

/** Reads the frames of a stream into `frames` until it ends or breaks. */
async function collect(
	body: ReadableStream<Uint8Array> | null,
	frames: Frame[],
): Promise<"ended" | "broken"> {
	const events = body
		?.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
		.pipeThrough(new EventSourceParserStream());
	try {
		for await (const { event, id, data } of events ?? []) frames.push({ event, id, data });
		return "ended";
	} catch {
		return "broken";
	}
}

/** An SDK client on HTTP+SSE, with what came to it, and a way to cut its connection as a proxy does. */
async function connect(example: Example, token: string) {
	const frames: Frame[] = [];
	const cut = new AbortController();
	const observed: typeof fetch = async (url, init) => {
		const headers = new Headers(init?.headers);
		headers.set("authorization", `Bearer ${token}`);
		const isStream = init?.method !== "POST";
		const response = await fetch(url, { ...init, headers, ...(isStream && { signal: cut.signal }) });
		if (!isStream || response.body === null) return response;
		const [own, theirs] = response.body.tee();
		void collect(own, frames);
		return new Response(theirs, { status: response.status, headers: response.headers });
	};
	const transport = new SSEClientTransport(new URL("/sse", example.origin), {
		fetch: observed,
		eventSourceInit: { fetch: observed as never },
	});
	const client = new Client({ name: "legacy", version: "1.0.0" });
	await client.connect(transport);
	const session = new URL(frames[0]?.data ?? "", example.origin).searchParams.get("sessionId") ?? "";
	return { client, frames, session, cut: () => cut.abort() };
}

interface Asked {
	readonly token: string;
	readonly session: string;
	readonly cursor?: string | undefined;
	readonly body?: object;
}

function ask({ mcp }: Example, { token, session, cursor, body }: Asked): Promise<Response> {
	return fetch(mcp, {
		method: body === undefined ? "GET" : "POST",
		headers: {
			authorization: `Bearer ${token}`,
			accept: "application/json, text/event-stream",
			"mcp-session-id": session,
			"mcp-protocol-version": "2025-11-25",
			...(cursor !== undefined && { "last-event-id": cursor }),
			...(body !== undefined && { "content-type": "application/json" }),
		},
		...(body !== undefined && { body: JSON.stringify(body) }),
	});
}

const fetchCall = {
	jsonrpc: "2.0",
	id: 77,
	method: "tools/call",
	params: { name: "fetch", arguments: { id: "1" } },
};

/** Opens on HTTP+SSE, drops in the middle of a call, and says what the client had of it. */
async function dropInTheMiddle(example: Example, token: string) {
	const legacy = await connect(example, token);
	let steps = 0;
	const second = new Promise<void>((resolve) => {
		const onprogress = () => void (++steps === 2 && resolve());
		legacy.client
			.callTool({ name: "slow", arguments: { steps: 4, milliseconds: 50 } }, undefined, { onprogress })
			.catch(() => undefined);
	});
	await second;
	legacy.cut();
	await legacy.client.close();
	const cursor = legacy.frames.findLast(({ id }) => id !== undefined)?.id;
	return {
		session: legacy.session,
		cursor,
		had: legacy.frames.filter(({ data }) => data.includes("progress")),
	};
}

function progressOf(frames: readonly Frame[]): number[] {
	return frames.flatMap(({ data }) =>
		data.includes("notifications/progress") ? [JSON.parse(data).params.progress] : [],
	);
}

it("a client of 2024-11-05 calls tools, and every message has an id", async () => {
	const example = await start();
	const { client, frames } = await connect(example, await mint(example, "mcp://srv"));
	expect(await client.callTool({ name: "fetch", arguments: { id: "1" } })).toMatchObject({
		content: [{ text: "the text of document 1" }],
	});
	expect(frames[0]).toMatchObject({ event: "endpoint" });
	expect(frames.every(({ id }) => id !== undefined)).toBe(true);
	await client.close();
});

it("opened on /sse and cut, it goes on at /mcp with the same binding: nothing is lost, nothing comes twice", async () => {
	const example = await start();
	const token = await mint(example, "mcp://srv");
	const { session, cursor, had } = await dropInTheMiddle(example, token);

	const resumed = await ask(example, { token, session, cursor });
	expect(resumed.status).toBe(200);
	const frames: Frame[] = [];
	const done = collect(resumed.body, frames);
	await expect
		.poll(() => frames.some(({ data }) => data.includes("4 steps done")), { timeout: 5_000 })
		.toBe(true);
	expect([...progressOf(had), ...progressOf(frames)]).toEqual([1, 2, 3, 4]);

	const posted = await ask(example, { token, session, body: fetchCall });
	expect(posted.status).toBe(200);
	const answered: Frame[] = [];
	expect(await collect(posted.body, answered)).toBe("ended");
	expect(answered.map(({ data }) => data && JSON.parse(data).id)).toEqual(["", 77]);
	await running[0]?.app.resumeGuard.endSessions({ sub: "alice" });
	expect(await done).toBe("broken");
});

it("with a rotated audience the old id ends: 403 without Mcp-Session-Id, buffer gone, then 404", async () => {
	const example = await start();
	const { session, cursor } = await dropInTheMiddle(example, await mint(example, "mcp://srv"));
	const rotated = await mint(example, "mcp://srv/v2");

	const resumed = await ask(example, { token: rotated, session, cursor });
	expect(resumed.status).toBe(403);
	expect(resumed.headers.has("mcp-session-id")).toBe(false);
	expect((await resumed.json()).error.data).toMatchObject({
		outcome: "reinitialize",
		code: "binding_drift",
		drift: ["aud"],
		deliver: 0,
		session: "end",
	});
	for (const token of [rotated, await mint(example, "mcp://srv")]) {
		expect((await ask(example, { token, session, cursor })).status).toBe(404);
		expect((await ask(example, { token, session, body: fetchCall })).status).toBe(404);
	}
});

it("a rotation that is declared as aliases goes on", async () => {
	const example = await start({ data: { aliases: [["mcp://srv", "mcp://srv/v2"]] } });
	const { session, cursor } = await dropInTheMiddle(example, await mint(example, "mcp://srv"));
	const resumed = await ask(example, { token: await mint(example, "mcp://srv/v2"), session, cursor });
	expect(resumed.status).toBe(200);
	await resumed.body?.cancel();
});

it("a reconnect to /sse opens a new session, whatever it says about an old one", async () => {
	const example = await start();
	const token = await mint(example, "mcp://srv");
	const { session, cursor } = await dropInTheMiddle(example, token);
	const response = await fetch(new URL("/sse", example.origin), {
		headers: {
			authorization: `Bearer ${token}`,
			accept: "text/event-stream",
			"mcp-session-id": session,
			"last-event-id": cursor ?? "",
		},
	});
	const frames: Frame[] = [];
	void collect(response.body, frames);
	await expect.poll(() => frames.length).toBe(1);
	expect(frames[0]?.data).toMatch(/^\/messages\?sessionId=/);
	expect(frames[0]?.data).not.toContain(session);
});

it("a stranger with the session id can neither post nor resume, and ends the session", async () => {
	const example = await start();
	const { session, cursor } = await dropInTheMiddle(example, await mint(example, "mcp://srv"));
	const stranger = await mint(example, "mcp://srv", "mallory");
	const post = await fetch(new URL(`/messages?sessionId=${session}`, example.origin), {
		method: "POST",
		headers: { authorization: `Bearer ${stranger}`, "content-type": "application/json" },
		body: JSON.stringify(fetchCall),
	});
	expect(post.status).toBe(403);
	expect((await ask(example, { token: stranger, session, cursor })).status).toBe(404);
});

it.each([
	["no token", {}, "?sessionId=x", 401],
	["no session id", { token: true }, "", 400],
	["an unknown session id", { token: true }, "?sessionId=x", 404],
	["two session ids that disagree", { token: true, header: "y" }, "?sessionId=x", 400],
	["two session ids in the query", { token: true }, "?sessionId=x&sessionId=x", 400],
] as const)(
	"a message with %s is refused",
	async (_, given: { token?: boolean; header?: string }, query, status) => {
		const example = await start();
		const response = await fetch(new URL(`/messages${query}`, example.origin), {
			method: "POST",
			headers: {
				"content-type": "application/json",
				...(given.token && { authorization: `Bearer ${await mint(example, "mcp://srv")}` }),
				...(given.header !== undefined && { "mcp-session-id": given.header }),
			},
			body: JSON.stringify(fetchCall),
		});
		expect(response.status).toBe(status);
	},
);

it("no session id is in the log, also where it is in the URL", async () => {
	const lines: string[] = [];
	const example = await start({
		logger: { level: "trace", stream: { write: (line) => void lines.push(line) } },
	});
	const token = await mint(example, "mcp://srv");
	const { session } = await dropInTheMiddle(example, token);
	expect(lines.length).toBeGreaterThan(3);
	expect(lines.join("")).not.toContain(session);
	expect(lines.join("")).not.toContain(token);
});
