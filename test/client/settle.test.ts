import type { ServerResponse } from "node:http";
import { test as base, expect, test as serial, vi } from "vitest";
import {
	createRecoveringClient,
	type RecoveringClient,
	type RecoveringClientOptions,
	RecoveryError,
	type RecoveryErrorCode,
	type RecoveryEvent,
} from "../../src/client/index.ts";
import {
	json,
	message,
	type RawServer,
	refuse,
	result,
	type Script,
	sdks,
	startScripted,
	steps,
	stream,
	type TestClient,
} from "./support.ts";

const BOUND = 700;
/** For a busy machine. */
const SLACK = 1500;

interface Setting {
	readonly client: RecoveringClient<TestClient>;
	readonly connected: TestClient[];
	readonly events: RecoveryEvent[];
	readonly server: RawServer;
}

type Start = (
	sdk: (typeof sdks)[number],
	script: Script,
	options?: Partial<RecoveringClientOptions<TestClient>>,
) => Promise<Setting>;

// Concurrent: most of the time they wait.
const test = base.extend<{ start: Start }>({
	start: async ({ task: _ }, use) => {
		const open: { close(): Promise<void> }[] = [];
		await use(async (sdk, script, options) => {
			const server = await startScripted(script);
			const connected: TestClient[] = [];
			const events: RecoveryEvent[] = [];
			const client = createRecoveringClient<TestClient>({
				url: server.mcp,
				async connect(fetch) {
					const made = await sdk.connect(server.mcp, fetch);
					connected.push(made);
					return made;
				},
				token: () => "token",
				recoveryTimeout: BOUND,
				onRecovery: (event) => events.push(event),
				...options,
			});
			open.push(client, server);
			return { client, connected, events, server };
		});
		for (const item of open) await item.close();
	},
}).concurrent;

async function rejection(work: Promise<unknown>): Promise<RecoveryError> {
	const error = await work.then(
		(value) => expect.unreachable(`resolved with ${value}`),
		(error: unknown) => error,
	);
	expect(error).toBeInstanceOf(RecoveryError);
	return error as RecoveryError;
}

/** A call that is cut after its first event. */
const cut: Script["call"] = (response) => {
	stream(response, message({ method: "notifications/message", params: { level: "info", data: 1 } }, "1"));
	setTimeout(() => response.destroy(), 20);
};
/** A call that ends cleanly after its first event. */
const ended: Script["call"] = (response) => {
	stream(
		response,
		message({ method: "notifications/message", params: { level: "info", data: 1 } }, "1"),
	).end();
};

const status = (code: number) => (response: ServerResponse) => response.writeHead(code).end();

/** Where a stock client hangs until its own timeout, or loses its cursor and then hangs. */
const hanging: Record<string, Script & { readonly want: RecoveryErrorCode }> = {
	"a clean end, again and again": {
		call: ended,
		resume: (response) => stream(response).end(),
		want: "recovery_timeout",
	},
	"a clean end with the cursor and nothing else": {
		call: ended,
		resume: (response) => stream(response, "id: 1\ndata: \n\n").end(),
		want: "recovery_timeout",
	},
	"a clean end with a new id without an event": {
		call: ended,
		resume: (response, _, gets) => stream(response, `id: ${gets + 1}\ndata: \n\n`).end(),
		want: "recovery_timeout",
	},
	"the same event again and again": {
		call: ended,
		resume: (response) =>
			stream(
				response,
				message({ method: "notifications/message", params: { level: "info", data: 1 } }, "1"),
			).end(),
		want: "recovery_timeout",
	},
	"an event without an id again and again": {
		call: ended,
		resume: (response) =>
			stream(
				response,
				message({ method: "notifications/message", params: { level: "info", data: 2 } }),
			).end(),
		want: "recovery_timeout",
	},
	"an error for nobody": {
		call: cut,
		resume: (response) =>
			stream(response, message({ id: null, error: { code: -32000, message: "no" } })).end(),
		want: "recovery_timeout",
	},
	"a result for another call": {
		call: cut,
		resume: (response, id) => stream(response, result(id + 100, "not yours")).end(),
		want: "recovery_timeout",
	},
	"a bare event: error": {
		call: cut,
		resume: (response) => stream(response, "event: error\ndata: broken\n\n").end(),
		want: "recovery_timeout",
	},
	"204": { call: cut, resume: status(204), want: "result_lost" },
	"200 with JSON": { call: cut, resume: (response) => json(response, 200, {}), want: "recovery_timeout" },
	"no answer at all": { call: cut, resume: () => undefined, want: "recovery_timeout" },
	"a broken connection each time": {
		call: cut,
		resume: (response) => response.destroy(),
		want: "recovery_timeout",
	},
	"409": { call: cut, resume: status(409), want: "recovery_timeout" },
	"429": { call: cut, resume: status(429), want: "recovery_timeout" },
	"500": { call: cut, resume: status(500), want: "recovery_timeout" },
	"503 with a long Retry-After": {
		call: cut,
		resume: (response) => response.writeHead(503, { "retry-after": "3600" }).end(),
		want: "recovery_timeout",
	},
	"an error whose text does not end": {
		call: cut,
		resume: (response) => response.writeHead(403, { "content-type": "application/json" }).write("{"),
		want: "recovery_timeout",
	},
	"400": { call: cut, resume: status(400), want: "result_lost" },
	"403": { call: cut, resume: status(403), want: "result_lost" },
	"404": { call: cut, resume: status(404), want: "result_lost" },
	"405": { call: cut, want: "result_lost" },
	"410": { call: cut, resume: status(410), want: "result_lost" },
	"401 whatever the token": { call: cut, resume: status(401), want: "not_authorized" },
	"a clean end before there is a cursor": {
		call: (response) => stream(response).end(),
		want: "result_lost",
	},
	"a cut before there is a cursor": {
		call: (response) => {
			stream(response, ": hello\n\n");
			setTimeout(() => response.destroy(), 20);
		},
		want: "result_lost",
	},
	"a call that is answered by an error whose text does not end": {
		call: (response) => response.writeHead(403, { "content-type": "application/json" }).write("{"),
		want: "result_lost",
	},
	"a call that gets no answer": { call: (response) => response.destroy(), want: "result_lost" },
	"a call that is accepted, no more": { call: status(202), want: "result_lost" },
	"a call whose JSON answer is another's": {
		call: (response, id) => json(response, 200, { jsonrpc: "2.0", id: id + 100, result: {} }),
		want: "result_lost",
	},
};

test.for(sdks.flatMap((sdk) => Object.entries(hanging).map(([name, cell]) => ({ sdk, name, ...cell }))))(
	"$sdk.name: settles in time: $name",
	async ({ sdk, name, want, ...script }, { start }) => {
		const { client, events } = await start(sdk, script);
		const started = performance.now();
		const error = await rejection(client.call((it) => it.tool("any")));
		expect(performance.now() - started).toBeLessThan(BOUND + SLACK);
		expect(error).toMatchObject({ code: want, mayHaveRun: true, method: "tools/call", tool: "any" });
		expect(steps(events)).toContain(`failed ${want}`);
	},
);

test.for(sdks)("$name: a token that does not come is not waited for", async (sdk, { start }) => {
	const script: Script = { call: cut, resume: status(401) };
	let asked = 0;
	const { client } = await start(sdk, script, {
		token: () => (asked++ === 0 ? "token" : new Promise<string>(() => undefined)),
	});
	const error = await rejection(client.call((it) => it.tool("any")));
	expect(error.code).toBe("recovery_timeout");
});

test.for(sdks)("$name: a session that does not open is not waited for", async (sdk, { start }) => {
	let isFirst = true;
	let url = "";
	const { client, server } = await start(
		sdk,
		{ call: status(404) },
		{
			connect(fetch) {
				if (!isFirst) return new Promise(() => undefined);
				isFirst = false;
				return sdk.connect(url, fetch);
			},
		},
	);
	url = `${server.origin}/mcp`;
	const error = await rejection(client.call((it) => it.tool("any")));
	expect(error).toMatchObject({ code: "recovery_timeout", outcome: "reinitialize", mayHaveRun: false });
});

test.for(sdks)(
	"$name: a server that has its clients poll is polled until the result is there",
	async (sdk, { start }) => {
		const { client, events } = await start(sdk, {
			call: (response) => stream(response, "id: 1\nretry: 100\ndata: \n\n").end(),
			resume: (response, id, gets) =>
				gets < 12
					? stream(response, "id: 1\nretry: 100\ndata: \n\n").end()
					: stream(response, result(id, "done", "2")).end(),
		});
		// Longer than the bound: it is the tool that takes its time.
		expect(await client.call((it) => it.tool("any"))).toBe("done");
		expect(steps(events).filter((step) => step === "resumed")).toHaveLength(12);
	},
);

test.for(sdks)("$name: an open stream is waited for, however long", async (sdk, { start }) => {
	const { client } = await start(
		sdk,
		{
			call: cut,
			resume(response, id) {
				stream(response, "id: 1\ndata: \n\n");
				setTimeout(() => response.end(result(id, "done", "2")), 600);
			},
		},
		{ recoveryTimeout: 300 },
	);
	expect(await client.call((it) => it.tool("any"))).toBe("done");
});

test.for(sdks)(
	"$name: an error of the tool's own, after a drop, is the call's error",
	async (sdk, { start }) => {
		const { client, events } = await start(sdk, {
			call: cut,
			resume: (response, id) =>
				stream(response, message({ id, error: { code: -32602, message: "no such document" } }, "2")).end(),
		});
		const error = await client.call((it) => it.tool("any")).catch((error: unknown) => error);
		expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("no such document") });
		expect(steps(events)).toEqual(["dropped", "resumed"]);
	},
);

test.for(sdks)("$name: what comes twice is passed on once", async (sdk, { start }) => {
	const progress = (step: number, id: number) =>
		message({ method: "notifications/progress", params: { progressToken: id, progress: step } }, `p${step}`);
	const { client, connected } = await start(sdk, {
		call(response, id) {
			stream(response, progress(1, id), progress(2, id));
			setTimeout(() => response.destroy(), 20);
		},
		resume: (response, id) =>
			stream(
				response,
				progress(1, id),
				progress(2, id),
				progress(3, id),
				result(id, "once", "r"),
				result(id, "twice", "r"),
				result(id, "thrice", "s"),
			).end(),
	});
	const seen: number[] = [];
	expect(await client.call((it) => it.tool("any", {}, (step) => seen.push(step)))).toBe("once");
	expect(seen).toEqual([1, 2, 3]);
	expect(connected.flatMap(({ errors }) => errors)).toEqual([]);
});

test.for(sdks)(
	"$name: the result of a call that was given up is not the result of its repetition",
	async (sdk, { start }) => {
		const late: ServerResponse[] = [];
		const { client, connected } = await start(
			sdk,
			{
				call(response, id, calls) {
					if (calls === 1) return cut(response, id, calls);
					stream(response, "id: 9\ndata: \n\n");
					// The first call's result comes on the second one's stream, and only then its own.
					response.end(result(id - 1, "late", "10") + result(id, "own", "11"));
				},
				resume: (response) => {
					late.push(response);
					return refuse(response, { outcome: "reissue", code: "cursor_evicted", status: 410 });
				},
			},
			{ mayRepeat: () => true },
		);
		expect(await client.call((it) => it.tool("any"))).toBe("own");
		expect(late).toHaveLength(1);
		expect(connected.flatMap(({ errors }) => errors)).toEqual([]);
	},
);

test.for(sdks)(
	"$name: a prefix, then why it is no more: a token, and the rest once",
	async (sdk, { start }) => {
		const decision = {
			outcome: "reauthorize",
			code: "audience_not_covered",
			required: { aud: ["https://mcp.example.com/tools/fetch"], scope: [] },
			status: 403,
		};
		const tokens: (string | undefined)[] = [];
		const progress = (step: number, id: number) =>
			message(
				{ method: "notifications/progress", params: { progressToken: id, progress: step } },
				`p${step}`,
			);
		const { client, events } = await start(
			sdk,
			{
				call(response, id) {
					stream(response, progress(1, id));
					setTimeout(() => response.destroy(), 20);
				},
				resume(response, id, gets, request) {
					tokens.push(request.headers.authorization);
					expect(request.headers["last-event-id"]).toBe(`p${gets}`);
					return gets === 1
						? stream(
								response,
								"id: p1\ndata: \n\n",
								progress(2, id),
								"retry: 1000\n\n",
								`event: error\ndata: ${JSON.stringify(decision)}\n\n`,
							).end()
						: stream(response, "id: p2\ndata: \n\n", progress(3, id), result(id, "all", "r")).end();
				},
			},
			{
				allowedResources: ["https://mcp.example.com/tools/*"],
				token: ({ required }) => (required ? "wide" : "narrow"),
			},
		);
		const seen: number[] = [];
		expect(await client.call((it) => it.tool("any", {}, (step) => seen.push(step)))).toBe("all");
		expect(seen).toEqual([1, 2, 3]);
		expect(tokens).toEqual(["Bearer narrow", "Bearer wide"]);
		expect(steps(events)).toEqual([
			"dropped",
			"resumed",
			"refused reauthorize",
			"token reauthorize",
			"resumed",
		]);
	},
);

test.for(sdks)(
	"$name: a decision that comes as the call's error is acted upon, once",
	async (sdk, { start }) => {
		const decision = {
			outcome: "reauthorize",
			code: "audience_not_covered",
			required: { aud: ["https://mcp.example.com/tools/fetch"], scope: [] },
			status: 403,
		};
		const requests: unknown[] = [];
		const { client } = await start(
			sdk,
			{
				call: cut,
				resume: (response, id, gets) =>
					gets > 3
						? stream(response, result(id, "never", "r")).end()
						: stream(
								response,
								"id: 1\ndata: \n\n",
								message({ id, error: { code: -32043, message: "no", data: decision } }),
							).end(),
			},
			{
				allowedResources: ["https://mcp.example.com/tools/fetch"],
				token(request) {
					requests.push(request.required?.aud ?? request.reason);
					return `token${requests.length}`;
				},
			},
		);
		expect(await rejection(client.call((it) => it.tool("any")))).toMatchObject({
			code: "not_authorized",
			decision,
		});
		expect(requests).toEqual(["start", ["https://mcp.example.com/tools/fetch"]]);
	},
);

const fishing: Record<string, Script> = {
	"of a call": {
		call: (response) => refuse(response, greedy("https://bank.example")),
	},
	"of a resume": { call: cut, resume: (response) => refuse(response, greedy("https://bank.example")) },
	"among others": {
		call: (response) => refuse(response, greedy("https://mcp.example.com/tools/x", "https://bank.example")),
	},
	"with metadata of its own": {
		call(response) {
			response.setHeader("www-authenticate", 'Bearer resource_metadata="/mine", error="insufficient_scope"');
			refuse(response, greedy("https://bank.example"));
		},
		other: (_, response) => json(response, 200, { resource: "https://bank.example" }),
	},
	"with a look-alike": {
		call: (response) => refuse(response, greedy("https://mcp.example.com/tools/../../bank")),
	},
};

function greedy(...aud: string[]) {
	return { outcome: "reauthorize", code: "audience_not_covered", required: { aud, scope: [] }, status: 403 };
}

test.for(sdks.flatMap((sdk) => Object.entries(fishing).map(([name, script]) => ({ sdk, name, script }))))(
	"$sdk.name: a server gets no token of others: in the answer $name",
	async ({ sdk, script }, { start }) => {
		const asked: unknown[] = [];
		const { client, events } = await start(sdk, script, {
			allowedResources: ["https://mcp.example.com/tools/*"],
			token({ reason }) {
				asked.push(reason);
				return "token";
			},
			mayRepeat: () => true,
		});
		const error = await rejection(client.call((it) => it.tool("any")));
		expect(error.code).toBe("resource_not_allowed");
		expect(error.message).toMatch(/bank/);
		expect(asked).toEqual(["start"]);
		expect(steps(events)).not.toContain("token reauthorize");
	},
);

test.for(sdks)("$name: what the server's own metadata names may be asked for", async (sdk, { start }) => {
	let origin = "";
	const { client, server } = await start(
		sdk,
		{
			call: (response, id, calls) =>
				calls === 1
					? refuse(response, greedy(`${origin}/mcp`))
					: json(response, 200, JSON.parse(result(id, "ok").slice(6))),
			other: (_, response) => json(response, 200, { resource: `${origin}/mcp` }),
		},
		{ token: ({ required }) => (required ? "wide" : "narrow") },
	);
	origin = server.origin;
	expect(await client.call((it) => it.tool("any"))).toBe("ok");
});

test.for(sdks)("$name: a call that its caller cancels is not followed any more", async (sdk, { start }) => {
	let aborted = 0;
	const { client, events } = await start(sdk, {
		call: cut,
		resume(response) {
			stream(response, "id: 1\ndata: \n\n");
			response.once("close", () => {
				aborted += 1;
			});
		},
	});
	const controller = new AbortController();
	const settled = client
		.call((it) => it.tool("any", {}, undefined, controller.signal))
		.catch((error: unknown) => error);
	await vi.waitFor(() => expect(steps(events)).toContain("resumed"));
	controller.abort("enough");
	expect(await settled).toBeInstanceOf(Error);
	await vi.waitFor(() => expect(aborted).toBe(1));
});

test.for(sdks)("$name: closing ends what is under way, and later calls", async (sdk, { start }) => {
	const { client, events } = await start(sdk, {
		call: cut,
		resume: (response) => stream(response, "id: 1\ndata: \n\n"),
	});
	const settled = client.call((it) => it.tool("any")).catch((error: unknown) => error);
	await vi.waitFor(() => expect(steps(events)).toContain("resumed"));
	await client.close();
	expect(await settled).toBeInstanceOf(Error);
	expect(await rejection(client.call((it) => it.tool("any")))).toMatchObject({ code: "client_closed" });
});

serial.each([
	["a timeout that is none", { recoveryTimeout: 0 }],
	["a timeout that no timer takes", { recoveryTimeout: Number.POSITIVE_INFINITY }],
	["a resource that could be anybody's", { allowedResources: ["https://*"] }],
	["a URL that is none", { url: "mcp" }],
])("%s is a mistake", (_, options) => {
	const given = {
		url: "https://mcp.example.com/mcp",
		connect: async () => ({ async close() {} }),
		token: () => "t",
	};
	expect(() => createRecoveringClient({ ...given, ...options })).toThrow(TypeError);
});
