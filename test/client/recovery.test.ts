import { randomUUID } from "node:crypto";
import { inspect } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { afterAll, test as base, beforeAll, expect, test as serial, vi } from "vitest";
import { type Example, startExample } from "../../examples/fastify/host.ts";
import {
	createRecoveringClient,
	type RecoveringClientOptions,
	RecoveryError,
	type RecoveryEvent,
	type RepeatQuestion,
	type TokenRequest,
} from "../../src/client/index.ts";
import { createMemoryEventLog } from "../../src/index.ts";
import { sessionKey } from "../../src/sessions/key.ts";
import { createHeard, type Sdk, sdks, steps, type TestClient } from "./support.ts";

const ALL = "https://mcp.example.com";
const SEARCH = "https://mcp.example.com/tools/search";
const FETCH = "https://mcp.example.com/tools/fetch";

/** Seconds that a token is good which is to expire in the middle of a call. */
const SHORT = 4;

type Issue = (
	request: TokenRequest,
) => { aud: string | string[]; seconds?: number; sub?: string } | undefined;
type Options = Partial<RecoveringClientOptions<TestClient>>;

/** A client of one SDK at the example, with an application that has its tokens from `issue`. */
async function connectTo(example: Example, sdk: Sdk, issue: Issue, options: Options) {
	const sub = randomUUID();
	const events = createHeard<RecoveryEvent>();
	const issued: string[] = [];
	const connected: TestClient[] = [];
	const client = createRecoveringClient<TestClient>({
		url: example.mcp,
		async connect(fetch) {
			const made = await sdk.connect(example.mcp, fetch);
			connected.push(made);
			return made;
		},
		async token(request) {
			const claims = issue(request);
			if (claims === undefined) return undefined;
			const exp = Math.floor(Date.now() / 1000) + (claims.seconds ?? 3600);
			const { authorizationServer } = example;
			const token = await authorizationServer.mint({ sub, client_id: "app", ...claims, exp });
			issued.push(token);
			return token;
		},
		onRecovery: events.hear,
		allowedResources: [`${ALL}/tools/*`, ALL],
		...options,
	});
	const post = (path: string, body: object) =>
		fetch(`${example.origin}${path}`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify(body),
		});
	const session = () => connected.at(-1)?.session ?? "";
	return {
		client,
		sub,
		events,
		issued,
		connected,
		session,
		drop: () => post("/dev/drop", { session: session() }),
		pass: (gate: string) => post("/dev/open", { session: session(), gate }),
	};
}

type Setting = Awaited<ReturnType<typeof connectTo>>;

type Start = (sdk: Sdk, issue: Issue, options?: Options, at?: Example) => Promise<Setting>;
// Concurrent: most of the time they wait.
const test = base.extend<{ start: Start }>({
	start: async ({ task: _ }, use) => {
		const open: { close(): Promise<void> }[] = [];
		await use(async (sdk, issue, options = {}, at = example) => {
			const setting = await connectTo(at, sdk, issue, options);
			open.push(setting.client);
			if (at !== example) open.push(at);
			return setting;
		});
		for (const item of open) await item.close();
	},
}).concurrent;

/** Each of the SDKs with each of the values. */
function pairs<T>(values: readonly (readonly [name: string, value: T])[]) {
	return sdks.flatMap((sdk) => values.map(([name, value]) => ({ sdk, name, value })));
}

let example: Example;
beforeAll(async () => {
	// What is expired is refused at once.
	example = await startExample({ data: { clock_skew: 0 } });
});
afterAll(() => example.close());

/** Calls `search`, which reports three pages and then waits at a gate. */
function search({ client }: Setting, pages = 5) {
	const progress = createHeard<number>();
	const given = { query: "x", pages, gate: "g", gate_after: 3 };
	const result = client.call((it) => it.tool("search", given, progress.hear));
	// Whatever comes of it is looked at later.
	result.catch(() => undefined);
	return { result, progress };
}

async function rejection(work: Promise<unknown>): Promise<RecoveryError> {
	const error = await work.then(
		(value) => expect.unreachable(`resolved with ${value}`),
		(error: unknown) => error,
	);
	expect(error).toBeInstanceOf(RecoveryError);
	return error as RecoveryError;
}

test.for(sdks)("$name: a call without a drop is a call", async (sdk, { start }) => {
	const setting = await start(sdk, () => ({ aud: ALL }));
	const seen: number[] = [];
	const found = setting.client.call((it) =>
		it.tool("search", { query: "x", pages: 3 }, (page) => seen.push(page)),
	);
	expect(await found).toBe("3 pages about x");
	expect(seen).toEqual([1, 2, 3]);
	expect(setting.events.all).toEqual([]);
});

test.for(sdks)("$name: a drop under the same token: everything once, in order", async (sdk, { start }) => {
	const setting = await start(sdk, () => ({ aud: ALL }));
	const { result, progress } = search(setting);
	await progress.first((page) => page === 3);
	await setting.drop();
	await setting.events.first(({ type }) => type === "resumed");
	await setting.pass("g");
	expect(await result).toBe("5 pages about x");
	expect(progress.all).toEqual([1, 2, 3, 4, 5]);
	expect(steps(setting.events.all)).toEqual(["dropped", "resumed"]);
	expect(setting.events.all[0]).toMatchObject({
		method: "tools/call",
		tool: "search",
		cursor: expect.any(String),
	});
	expect(inspect(setting.connected.map(({ errors }) => errors))).not.toContain("unknown");
});

test.for(sdks)("$name: a result that is made while nobody listens", async (sdk, { start }) => {
	let isDown = false;
	const setting = await start(sdk, () => ({ aud: ALL }), {
		fetch: async (url, init) => {
			if (isDown && init?.method === "GET") throw new TypeError("the network is down");
			return fetch(url, init);
		},
	});
	const { result, progress } = search(setting);
	await progress.first((page) => page === 3);
	isDown = true;
	await setting.drop();
	await setting.events.first(({ type }) => type === "dropped");
	await setting.pass("g");
	isDown = false;
	expect(await result).toBe("5 pages about x");
	expect(progress.all).toEqual([1, 2, 3, 4, 5]);
});

test.for(sdks)("$name: two drops in a row, the second before anything new", async (sdk, { start }) => {
	const setting = await start(sdk, () => ({ aud: ALL }));
	const { result, progress } = search(setting);
	await progress.first((page) => page === 3);
	await setting.drop();
	await setting.events.first(({ type }) => type === "resumed");
	await setting.drop();
	await setting.events.first(
		() => steps(setting.events.all).filter((step) => step === "resumed").length === 2,
	);
	await setting.pass("g");
	expect(await result).toBe("5 pages about x");
	expect(progress.all).toEqual([1, 2, 3, 4, 5]);
	const cursors = setting.events.all.map((event) => "cursor" in event && event.cursor);
	expect(new Set(cursors).size).toBe(1);
});

test.for(sdks)(
	"$name: an expired token: a fresh one, and on from the same cursor",
	async (sdk, { start }) => {
		const setting = await start(sdk, ({ reason }) => ({
			aud: ALL,
			seconds: reason === "start" ? SHORT : 3600,
		}));
		const { result, progress } = search(setting);
		await setting.events.first(({ type }) => type === "resumed");
		await setting.pass("g");
		expect(await result).toBe("5 pages about x");
		expect(progress.all).toEqual([1, 2, 3, 4, 5]);
		expect(steps(setting.events.all)).toEqual([
			"dropped",
			"refused reauthenticate",
			"token reauthenticate",
			"resumed",
		]);
	},
);

test.for(sdks)(
	"$name: a narrower token after the drop: one that covers what is required, and on from the same cursor",
	async (sdk, { start }) => {
		const setting = await start(sdk, ({ reason, required }) => {
			if (reason === "start") return { aud: ALL, seconds: SHORT };
			return { aud: required ? [...required.aud] : FETCH };
		});
		const { result, progress } = search(setting);
		await setting.events.first(({ type }) => type === "resumed");
		await setting.pass("g");
		expect(await result).toBe("5 pages about x");
		expect(progress.all).toEqual([1, 2, 3, 4, 5]);
		expect(steps(setting.events.all)).toEqual([
			"dropped",
			"refused reauthenticate",
			"token reauthenticate",
			"refused reauthorize",
			"token reauthorize",
			"resumed",
		]);
		expect(
			setting.events.all.find(({ type }) => type === "token" && "required" in setting.events.all),
		).toBeUndefined();
	},
);

test.for(sdks)(
	"$name: a token too narrow for the call: one that covers it, before the tool runs",
	async (sdk, { start }) => {
		const setting = await start(sdk, ({ required }) => ({ aud: required ? [...required.aud] : FETCH }));
		const found = setting.client.call((it) => it.tool("search", { query: "x", pages: 1 }));
		expect(await found).toBe("1 pages about x");
		expect(steps(setting.events.all)).toEqual(["refused reauthorize", "token reauthorize"]);
	},
);

const refusals: readonly [name: string, answer: () => ReturnType<Issue>][] = [
	["has none", () => undefined],
	[
		"throws",
		() => {
			throw new Error("invalid_target");
		},
	],
	["has another one that is too narrow", () => ({ aud: FETCH })],
];

test.for(pairs(refusals))(
	"$sdk.name: a token that is not to be had: the application $name",
	async ({ sdk, value: answer }, { start }) => {
		const setting = await start(sdk, ({ reason }) => {
			if (reason === "reauthorize") return answer();
			return reason === "start" ? { aud: ALL, seconds: SHORT } : { aud: FETCH };
		});
		const error = await rejection(search(setting).result);
		expect(error).toMatchObject({
			code: "not_authorized",
			outcome: "reauthorize",
			decision: { code: "audience_not_covered", required: { aud: [SEARCH] } },
			mayHaveRun: true,
			tool: "search",
		});
		expect(steps(setting.events.all).filter((step) => step === "token reauthorize")).toHaveLength(1);
		// The client works on with what it has.
		expect(await setting.client.call((it) => it.tool("fetch", { id: "1" }))).toBe("the text of document 1");
	},
);

test.for(sdks)(
	"$name: a resource that the application does not know is not asked for",
	async (sdk, { start }) => {
		const setting = await start(sdk, ({ reason }) => (reason === "start" ? { aud: FETCH } : { aud: ALL }), {
			allowedResources: [FETCH],
			mayRepeat: () => true,
		});
		const error = await rejection(setting.client.call((it) => it.tool("search", { query: "x" })));
		expect(error).toMatchObject({ code: "resource_not_allowed", mayHaveRun: false });
		expect(error.message).toContain(SEARCH);
		expect(setting.issued).toHaveLength(1);
	},
);

/** At an example with little room for events, a call whose cursor has been evicted by the time that its client comes back. */
async function startEvicted(sdk: Sdk, start: Start, options: Options) {
	const log = createMemoryEventLog({ eventsPerPrincipal: 40 });
	const host = await startExample({ guard: { events: log } });
	let isDown = false;
	const setting = await start(
		sdk,
		() => ({ aud: ALL }),
		{
			fetch: async (url, init) => {
				if (isDown && init?.method === "GET") throw new TypeError("the network is down");
				return fetch(url, init);
			},
			...options,
		},
		host,
	);
	await setting.client.call((it) => it.list());
	const { result, progress } = search(setting);
	await progress.first((page) => page === 3);
	isDown = true;
	await setting.drop();
	const dropped = await setting.events.first(({ type }) => type === "dropped");
	await setting.pass("g");
	// Its events make room for others of the same principal.
	const cursor = "cursor" in dropped ? (dropped.cursor ?? "") : "";
	await setting.client.call((it) => it.tool("search", { query: "y", pages: 60 }, () => undefined));
	expect(await log.locate(sessionKey(setting.session()), cursor)).toMatchObject({ position: "evicted" });
	isDown = false;
	return { ...setting, result };
}

test.for(sdks)(
	"$name: an evicted cursor: the call is made again where the application says so",
	async (sdk, { start }) => {
		const questions: RepeatQuestion[] = [];
		const { result, events, connected } = await startEvicted(sdk, start, {
			mayRepeat(question) {
				questions.push(question);
				return question.tool === "search";
			},
		});
		expect(await result).toBe("5 pages about x");
		expect(questions).toMatchObject([
			{
				method: "tools/call",
				tool: "search",
				annotations: {},
				error: { code: "result_lost", outcome: "reissue" },
			},
		]);
		expect(steps(events.all).slice(-3)).toEqual(["refused reissue", "failed result_lost", "repeated"]);
		expect(connected).toHaveLength(1);
	},
);

const answers: readonly [name: string, options: Options][] = [
	["does not say so", {}],
	["says no", { mayRepeat: () => false }],
	["says something else", { mayRepeat: () => "yes" as unknown as boolean }],
];

test.for(pairs(answers))(
	"$sdk.name: an evicted cursor: the call is not made again where the application $name",
	async ({ sdk, value: options }, { start }) => {
		const { result, events } = await startEvicted(sdk, start, options);
		expect(await rejection(result)).toMatchObject({
			code: "result_lost",
			outcome: "reissue",
			decision: { code: "cursor_evicted" },
			mayHaveRun: true,
		});
		expect(steps(events.all)).not.toContain("repeated");
	},
);

const rotated = ({ reason }: TokenRequest) =>
	reason === "start" ? { aud: "mcp://srv", seconds: SHORT } : { aud: "mcp://srv/v2" };

test.for(sdks)(
	"$name: an audience rotation: a new session, and the call again where the application says so",
	async (sdk, { start }) => {
		const setting = await start(sdk, rotated, { mayRepeat: ({ tool }) => tool === "search" });
		const { result } = search(setting);
		await setting.events.first(({ type }) => type === "repeated");
		await vi.waitFor(() => expect(setting.connected).toHaveLength(2));
		await setting.pass("g");
		expect(await result).toBe("5 pages about x");
		expect(steps(setting.events.all)).toEqual([
			"dropped",
			"refused reauthenticate",
			"token reauthenticate",
			"refused reinitialize",
			"failed result_lost",
			"reinitialized",
			"repeated",
		]);
		expect(setting.connected[0]?.session).not.toBe(setting.connected[1]?.session);
	},
);

test.for(sdks)(
	"$name: an audience rotation: the call is lost otherwise, and the next one has a new session",
	async (sdk, { start }) => {
		const setting = await start(sdk, rotated);
		expect(await rejection(search(setting).result)).toMatchObject({
			code: "result_lost",
			outcome: "reinitialize",
			decision: { code: "binding_drift", drift: ["aud"], session: "end" },
			mayHaveRun: true,
		});
		expect(await setting.client.call((it) => it.tool("fetch", { id: "1" }))).toBe("the text of document 1");
		expect(setting.connected).toHaveLength(2);
	},
);

test.for(sdks)(
	"$name: a session that is over before the call: it has not run, and is made on a new one",
	async (sdk, { start }) => {
		const questions: RepeatQuestion[] = [];
		const setting = await start(sdk, () => ({ aud: ALL }), {
			mayRepeat: (question) => !questions.push(question),
		});
		await setting.client.call((it) => it.tool("fetch", { id: "1" }));
		await example.app.resumeGuard.endSessions({ sub: setting.sub });
		expect(await setting.client.call((it) => it.tool("fetch", { id: "2" }))).toBe("the text of document 2");
		expect(setting.connected).toHaveLength(2);
		expect(questions).toEqual([]);
	},
);

test.for(sdks)(
	"$name: another principal has the session no more: the next call has its own",
	async (sdk, { start }) => {
		const setting = await start(sdk, ({ reason }) =>
			reason === "start" ? { aud: ALL, seconds: SHORT } : { aud: ALL, sub: randomUUID() },
		);
		expect(await rejection(search(setting).result)).toMatchObject({
			code: "result_lost",
			status: 403,
			mayHaveRun: true,
		});
		expect(await setting.client.call((it) => it.tool("fetch", { id: "1" }))).toBe("the text of document 1");
		expect(setting.connected).toHaveLength(2);
	},
);

test.for(sdks)("$name: a refusal is the call's error", async (sdk, { start }) => {
	const setting = await start(sdk, () => ({ aud: ALL }), { mayRepeat: () => true });
	expect(await rejection(setting.client.call((it) => it.tool("unmapped")))).toMatchObject({
		code: "refused",
		outcome: "refuse",
		decision: { code: "tool_unmapped" },
		status: 403,
		mayHaveRun: false,
		tool: "unmapped",
	});
});

test.for(sdks)(
	"$name: calls side by side: each has its own result, and the application is asked once",
	async (sdk, { start }) => {
		const setting = await start(sdk, ({ reason }) => ({
			aud: ALL,
			seconds: reason === "start" ? SHORT : 3600,
		}));
		const first = search(setting);
		const second = search(setting, 4);
		await setting.events.first(
			() => steps(setting.events.all).filter((step) => step === "resumed").length === 2,
		);
		await setting.pass("g");
		expect(await Promise.all([first.result, second.result])).toEqual(["5 pages about x", "4 pages about x"]);
		expect(first.progress.all).toEqual([1, 2, 3, 4, 5]);
		expect(second.progress.all).toEqual([1, 2, 3, 4]);
		expect(setting.issued).toHaveLength(2);
	},
);

test.for(sdks)("$name: no token and no session id in what is reported", async (sdk, { start }) => {
	const setting = await start(sdk, ({ reason }) =>
		reason === "start" ? { aud: ALL, seconds: SHORT } : { aud: FETCH },
	);
	const error = await rejection(search(setting).result);
	const told = inspect([setting.events.all, error, error.message], { depth: null });
	for (const secret of [...setting.issued, ...setting.connected.map(({ session }) => session)]) {
		expect(secret).not.toBe("");
		expect(told).not.toContain(secret);
	}
});

test.for(sdks)(
	"$name: an application that reports badly, or gives what is no token, breaks nothing and leaks nothing",
	async (sdk, { start }) => {
		const setting = await start(sdk, () => ({ aud: ALL }), {
			onRecovery() {
				throw new Error("no report");
			},
			token: () => "two words\nand a line",
		});
		const error = await setting.client
			.call((it) => it.tool("fetch", { id: "1" }))
			.catch((error: unknown) => error);
		expect(error).toMatchObject({ code: "not_authorized" });
		expect(inspect(error)).not.toContain("two words");
	},
);

serial("on HTTP+SSE, where the answer to a call comes on another stream, calls are left alone", async () => {
	const { origin, authorizationServer } = example;
	const client = createRecoveringClient({
		url: origin,
		async connect(fetch) {
			const made = new Client({ name: "test", version: "1.0.0" });
			await made.connect(new SSEClientTransport(new URL(`${origin}/sse`), { fetch }));
			return made;
		},
		token: () => authorizationServer.mint({ sub: "legacy", client_id: "app", aud: ALL }),
	});
	const result = await client.call((it) => it.callTool({ name: "fetch", arguments: { id: "1" } }));
	await client.close();
	expect(result).toMatchObject({ content: [{ text: "the text of document 1" }] });
});
