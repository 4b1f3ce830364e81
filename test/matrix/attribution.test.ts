import { setTimeout as sleep } from "node:timers/promises";
import { createMemoryEventLog, type EventLog } from "mcp-resume-guard";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RunningCall } from "./calls.ts";
import { type Behind, type Host, startHost } from "./host.ts";
import { type Appended, createOverheardLog } from "./overheard.ts";
import { cancel, type Incoming, openRaw, type RawSession, toolCall, UNPRIMED } from "./raw.ts";
import { mint } from "./tokens.ts";

const SEARCH = { tool: "search", aud: ["https://mcp.example.com/tools/search"], scope: [] };
const FETCH = { tool: "fetch", aud: ["https://mcp.example.com/tools/fetch"], scope: [] };
const BOTH = { aud: [...FETCH.aud, ...SEARCH.aud], scope: [] };

const servers: readonly Behind[] = [
	{ server: "v1", kind: "node", transport: "sdk" },
	{ server: "v2", kind: "fastify", transport: "sdk" },
	{ server: "v1", kind: "fastify", transport: "own" },
	{ server: "v2", kind: "node", transport: "own" },
];

describe.each(servers)("what a $server server emits (behind $kind, $transport transport)", (options) => {
	const { server, transport } = options;
	let host: Host;
	let appended: readonly Appended[];
	let session: RawSession;
	let wide: string;
	let narrow: string;

	beforeEach(async () => {
		const log = createOverheardLog();
		appended = log.appended;
		host = await startHost({ ...options, events: log.events });
		wide = await mint("wide");
		narrow = await mint("narrow");
		session = await openRaw(host.port, wide);
	});

	afterEach(() => host.close());

	/** Makes a call in a POST of its own. */
	async function call(id: string | number, tool: string, name: string, options?: { token: string }) {
		const response = await session.post(toolCall(id, tool, name), options);
		return { response, running: await host.calls.running(name) };
	}

	/** Makes calls `[id, tool, name]` in one POST. */
	async function batch(...calls: readonly (readonly [id: string | number, tool: string, name: string])[]) {
		const response = await session.post(calls.map((one) => toolCall(...one)));
		return { response, running: await Promise.all(calls.map(([, , name]) => host.calls.running(name))) };
	}

	/** The stored events of a text: of progress, of a result or of a log message. */
	const stored = (text: string) =>
		appended.filter(({ message }) => JSON.stringify(message).includes(`"${text}"`));

	describe("labels", () => {
		test("are those of the call, by its id, without an asynchronous context", async () => {
			const a = await call(1, "search", "a");
			const b = await call("1", "fetch", "b");
			await b.running.progress(1);
			await a.running.progress(1);
			b.running.finish();
			a.running.finish();
			await Promise.all([a.response.ended, b.response.ended]);

			for (const text of ["search a 1", "search a result"]) {
				expect(stored(text)).toMatchObject([{ label: SEARCH, request_id: 1 }]);
			}
			for (const text of ["fetch b 1", "fetch b result"]) {
				expect(stored(text)).toMatchObject([{ label: FETCH, request_id: "1" }]);
			}
			expect(stored("fetch b result")).toMatchObject([{ terminal: true }]);
			expect(stored("fetch b 1")[0]).not.toHaveProperty("terminal");
			expect(stored("search a 1")[0]?.stream).not.toBe(stored("fetch b 1")[0]?.stream);
		});

		test("are those of the call in the asynchronous context of another, as from a loader that batches", async () => {
			const a = await call(1, "search", "a");
			const b = await call(2, "fetch", "b");
			await a.running.inContext(() => b.running.progress(1));
			await b.running.inContext(() => a.running.progress(1));
			await b.running.inContext(() => a.running.finish());
			await a.response.ended;

			expect(stored("fetch b 1")).toMatchObject([{ label: FETCH, request_id: 2 }]);
			expect(stored("search a 1")).toMatchObject([{ label: SEARCH, request_id: 1 }]);
			expect(stored("search a result")).toMatchObject([{ label: SEARCH, request_id: 1 }]);
			expect(await b.response.has(1)).toMatchObject([{ params: { message: "fetch b 1" } }]);
			expect(a.response.text).not.toContain("fetch");
		});

		test("are those of each call of a batch", async () => {
			const { response, running } = await batch([1, "search", "a"], [2, "fetch", "b"]);
			for (const one of running) await one.progress(1);
			for (const one of running) one.finish();
			await response.ended;

			expect(stored("search a 1")).toMatchObject([{ label: SEARCH, request_id: 1 }]);
			expect(stored("fetch b 1")).toMatchObject([{ label: FETCH, request_id: 2 }]);
			expect(stored("search a result")).toMatchObject([{ label: SEARCH, terminal: true }]);
			expect(stored("fetch b result")).toMatchObject([{ label: FETCH, terminal: true }]);
		});

		test("of a log line that names no call are those of the call that it is written in, if that can be told", async () => {
			const a = await call(1, "fetch", "a");
			await call(2, "search", "b");
			await a.running.inContext(() => a.running.announce("inside"));
			await a.running.announce("outside");
			expect(stored("inside").map(({ label }) => label)).toEqual([{ aud: FETCH.aud, scope: [] }]);
			// What all calls of the session so far have needed.
			expect(stored("outside").map(({ label }) => label)).toEqual([BOTH]);
			for (const text of ["inside", "outside"]) {
				expect(stored(text)[0]).not.toHaveProperty("request_id");
				expect(a.response.text).not.toContain(text);
			}
		});
	});

	test.each([
		["at once", 0],
		["late, now more and now less", 8],
	])("goes out in the order in which it is sent, from a log that answers %s", async (_, delay) => {
		const slow = await startHost({ ...options, events: createLateLog(delay) });
		try {
			session = await openRaw(slow.port, wide);
			const own = await session.get();
			const calls = [toolCall(1, "search", "a"), toolCall(2, "fetch", "b"), toolCall(3, "search", "c")];
			const response = await session.post(calls);
			const [a, b, c] = await Promise.all(["a", "b", "c"].map(slow.calls.running));
			for (let step = 1; step <= 20; step += 1) {
				if (step === 10) a?.finish();
				if (step === 15) c?.finish();
				void b?.progress(step);
				void b?.announce(`${step}`);
				await Promise.resolve();
			}
			b?.finish();
			await response.ended;
			expect(numbersOf(response)).toEqual(Array.from({ length: 24 }, (_, index) => index + 1));
			const steps = Array.from({ length: 20 }, (_, index) => index + 1);
			expect(response.messages.flatMap((one) => progressOf(one) ?? [])).toEqual(steps);
			const announced = (await own.has(20)) as { params: { data: string } }[];
			expect(announced.map(({ params }) => Number(params.data))).toEqual(steps);
		} finally {
			await slow.close();
		}
	});

	describe("on the sessions' own streams", () => {
		test("reaches its own session only, and a cursor of another session is unknown", async () => {
			const other = await openRaw(host.port, wide);
			const [mine, theirs] = [await session.get(), await other.get()];
			const a = await call(1, "fetch", "a");
			const response = await other.post(toolCall(1, "fetch", "b"));
			const b = await host.calls.running("b");
			await a.running.announce("for a");
			await b.announce("for b");
			expect(await mine.has(1)).toMatchObject([{ params: { data: "for a" } }]);
			expect(await theirs.has(1)).toMatchObject([{ params: { data: "for b" } }]);
			expect(stored("for a")[0]?.stream).not.toBe(stored("for b")[0]?.stream);

			const [cursor] = theirs.frames.map(({ id }) => id);
			const foreign = await session.get(cursor);
			await foreign.ended;
			expect(foreign.status).toBe(400);
			expect(foreign.text).toContain("cursor_unknown");
			expect(foreign.text).not.toContain("for b");
			response.leave();
		});

		test("is replayed after a drop", async () => {
			const first = await session.get();
			await vi.waitFor(() => expect(first.frames).toHaveLength(1));
			const a = await call(1, "fetch", "a");
			await a.running.announce("one");
			await first.has(1);
			const cursor = first.frames.at(-1)?.id;
			first.leave();
			await a.running.announce("two");
			const refused = await session.get(cursor, { token: narrow });
			await refused.ended;
			expect(refused.status).toBe(403);
			expect(refused.text).not.toContain("two");
			const again = await session.get(cursor);
			await a.running.announce("three");
			expect(await again.has(2)).toMatchObject([{ params: { data: "two" } }, { params: { data: "three" } }]);
		});
	});

	describe("as a request to the client", () => {
		/** Starts a call of `fetch` that asks the client, and resolves with what it is asked. */
		async function asked(how: "elicit" | "sample", options?: Parameters<RunningCall["elicit"]>[0]) {
			const { response, running } = await call(0, "fetch", "a");
			const answer = how === "elicit" ? running.elicit(options) : running.sample();
			// It may still be open when the host closes.
			answer.catch(() => undefined);
			const [request] = (await response.has(1)) as [
				{ id: number; params: { _meta?: { progressToken: number } } },
			];
			return { response, running, answer, request };
		}
		const accepted = { action: "accept", content: { answer: "yes" } };
		const answerTo = (id: number, result: object) => ({ jsonrpc: "2.0", id, result });
		const sampled = { role: "assistant", model: "m", content: { type: "text", text: "hello" } };

		test.each([
			["elicit", accepted],
			["sample", sampled],
		] as const)(
			"(%s) is on the call's stream, and only who may have the call may answer",
			async (how, result) => {
				const { response, running, answer, request } = await asked(how);
				expect(stored("2.0").at(-1)).toMatchObject({ label: FETCH, request_id: 0 });
				expect(stored("2.0").at(-1)).not.toHaveProperty("terminal");

				const refused = await session.post(answerTo(request.id, result), { token: narrow });
				await refused.ended;
				expect(refused.status).toBe(403);
				expect(JSON.parse(refused.text)).toMatchObject({
					error: { data: { outcome: "reauthorize", code: "audience_not_covered", held: { tool: "fetch" } } },
				});
				expect(await settled(answer)).toBe(false);

				expect((await session.post(answerTo(request.id, result))).status).toBe(202);
				expect(await answer).toMatchObject(result);
				// The ids of client and server are each their own: call 0 is not answered by the answer to request 0.
				running.finish();
				expect(await response.has(2)).toMatchObject([{}, { id: 0, result: {} }]);
			},
		);

		test("that names no call is answered by who may have the call that it is asked in", async () => {
			const own = await session.get();
			const { running } = await call(0, "fetch", "a");
			const answer = running.inContext(() => running.elicitAside());
			const [request] = (await own.has(1)) as [{ id: number }];
			expect((await session.post(answerTo(request.id, accepted), { token: narrow })).status).toBe(403);
			expect(await settled(answer)).toBe(false);
			expect((await session.post(answerTo(request.id, accepted))).status).toBe(202);
			expect(await answer).toMatchObject(accepted);
		});

		test("is answered once", async () => {
			const { answer, request } = await asked("elicit");
			expect((await session.post(answerTo(request.id, accepted))).status).toBe(202);
			await answer;
			expect((await session.post(answerTo(request.id, accepted))).status).toBe(202);
			expect((await session.post(answerTo(request.id, accepted), { token: narrow })).status).toBe(202);
			expect(host.calls.errors).toEqual([]);
		});

		test("is not answered by an answer to nothing, which is taken and dropped", async () => {
			const { answer, request } = await asked("elicit");
			for (const id of [request.id + 7, String(request.id)]) {
				const dropped = await session.post({ jsonrpc: "2.0", id, result: accepted });
				expect(dropped.status).toBe(202);
			}
			expect(host.calls.errors).toEqual([]);
			expect(await settled(answer)).toBe(false);
		});

		test("is not answered in a batch whose rest may be sent", async () => {
			const { answer, request } = await asked("elicit");
			const ping = { jsonrpc: "2.0", id: "ping", method: "ping" };
			const refused = await session.post([ping, answerTo(request.id, accepted)], { token: narrow });
			expect(refused.status).toBe(403);
			expect(await settled(answer)).toBe(false);
		});

		test("is told of progress by who may have the call only", async () => {
			const told: number[] = [];
			const { request } = await asked("elicit", { onprogress: (progress) => void told.push(progress) });
			const progressToken = request.params._meta?.progressToken;
			const progress = (done: number) => ({
				jsonrpc: "2.0",
				method: "notifications/progress",
				params: { progressToken, progress: done },
			});
			expect((await session.post(progress(1), { token: narrow })).status).toBe(403);
			expect((await session.post(progress(2))).status).toBe(202);
			await vi.waitFor(() => expect(told).toEqual([2]));
			const unknown = {
				jsonrpc: "2.0",
				method: "notifications/progress",
				params: { progressToken: 99, progress: 1 },
			};
			expect((await session.post(unknown, { token: narrow })).status).toBe(202);
			expect(host.calls.errors).toEqual([]);
		});
	});

	describe("for a call that the client cancels", () => {
		test("goes on if who cancels may not have the call", async () => {
			const { running } = await call(1, "fetch", "a");
			expect((await session.post(cancel(1), { token: narrow })).status).toBe(403);
			expect((await session.post(cancel(2), { token: narrow })).status).toBe(202);
			expect((await session.post(cancel("1"), { token: narrow })).status).toBe(202);
			expect(running.signal.aborted).toBe(false);
			expect((await session.post(cancel(1))).status).toBe(202);
			await vi.waitFor(() => expect(running.signal.aborted).toBe(true));
		});

		test("keeps its label", async () => {
			const { response, running } = await call(1, "fetch", "a");
			await running.progress(1);
			await response.has(1);
			const cursor = response.frames.at(-1)?.id;
			response.leave();
			expect((await session.post(cancel(1))).status).toBe(202);
			// The server of v1 drops what a cancelled call emits, and the guard's own transport does not take it.
			const isTaken = server === "v2" && transport === "sdk";
			await running.progress(2);
			expect(host.calls.errors).toEqual(server === "v2" && !isTaken ? ["the call has ended"] : []);
			expect(stored("fetch a 2")).toMatchObject(isTaken ? [{ label: FETCH, request_id: 1 }] : []);

			const refused = await session.get(cursor, { token: narrow });
			await refused.ended;
			expect(refused.text).not.toContain("fetch a");
			expect(refused.status).toBe(isTaken ? 403 : 204);
			const again = await session.get(cursor);
			expect([again.status, await again.ended]).toEqual([isTaken ? 200 : 204, "clean"]);
			expect(again.messages).toMatchObject(isTaken ? [{ params: { message: "fetch a 2" } }] : []);
		});

		test("fails no later call of its id by what it emits late", async () => {
			const a = await call(1, "fetch", "a");
			expect((await session.post(cancel(1))).status).toBe(202);
			await a.running.progress(2);
			const b = await call(1, "search", "b", { token: narrow });
			for (const time of ["once", "again"]) {
				const own = await session.get(undefined, { token: narrow });
				await Promise.race([own.ended, sleep(50)]);
				own.leave();
				expect(own.text, time).not.toContain("fetch a");
				expect(own.messages, time).toEqual([]);
			}
			b.running.finish();
			expect(await b.response.ended).toBe("clean");
			expect(b.response.messages).toMatchObject([{ id: 1, result: {} }]);
		});
	});

	describe("for a call whose id", () => {
		test("is in use stays its own: the second is refused", async () => {
			const { response, running } = await call(1, "fetch", "a");
			const second = await session.post(toolCall(1, "search", "b"), { token: narrow });
			await second.ended;
			expect(second.status).toBe(400);
			expect(second.text).toContain("request_id_in_use");
			const twice = await session.post([toolCall(2, "search", "c"), toolCall(2, "search", "d")]);
			expect(twice.status).toBe(400);
			running.finish();
			expect(await response.has(1)).toMatchObject([{ id: 1, result: {} }]);
		});

		test("had been another's is labelled for what it is", async () => {
			const a = await call(1, "fetch", "a");
			a.running.finish();
			await a.response.ended;
			const b = await call(1, "search", "b", { token: narrow });
			await b.running.inContext(() => b.running.progress(1));
			b.running.finish();
			await b.response.ended;
			expect(stored("search b 1")).toMatchObject([{ label: SEARCH, request_id: 1 }]);
			expect(stored("search b result")).toMatchObject([{ label: SEARCH, request_id: 1, terminal: true }]);
			expect(b.response.messages).toMatchObject([{ params: { message: "search b 1" } }, { id: 1 }]);
		});

		const contexts: readonly {
			readonly context: string;
			readonly run: (call: RunningCall) => RunningCall["inContext"];
		}[] = [
			{ context: "its own context", run: ({ inContext }) => inContext },
			{ context: "no context", run: () => (emit) => emit() },
		];

		describe.each(contexts)(
			"is given to another does not reach that one's client late, from $context",
			({ run }) => {
				test.each([
					["answered", "primed", undefined],
					["cancelled", "primed", undefined],
					["answered", "unprimed", UNPRIMED],
					["cancelled", "unprimed", UNPRIMED],
				] as const)("when it has been %s (%s)", async (how, _, version) => {
					session = await openRaw(host.port, wide, version);
					const a = await call(1, "fetch", "a");
					if (how === "answered") a.running.finish();
					else await session.post(cancel(1));
					if (how === "answered") await a.response.ended;

					const response = await session.post(toolCall(1, "search", "b"), { token: narrow });
					if (response.status === 400) return expect(response.text).toContain("request_id_in_use");
					const b = await host.calls.running("b");
					// The SDK sends it where the id now leads to.
					await run(a.running)(() => a.running.progress(9)).catch(() => undefined);
					b.finish();
					await response.ended;
					expect(response.text).not.toContain("fetch a");
					for (const { label } of stored("fetch a 9"))
						expect(label.aud).toEqual(expect.arrayContaining(FETCH.aud));
				});
			},
		);
	});

	if (transport === "own") return;

	test("as JSON is not stored, and its ids are free again", async () => {
		const log = createOverheardLog();
		const plain = await startHost({ ...options, events: log.events, json: true });
		try {
			session = await openRaw(plain.port, wide);
			for (const name of ["a", "b"]) {
				const answer = session.post(toolCall(1, "search", name));
				const running = await plain.calls.running(name);
				running.finish();
				const response = await answer;
				await response.ended;
				expect(JSON.parse(response.text)).toMatchObject({ id: 1, result: {} });
			}
			expect(log.appended).toEqual([]);
		} finally {
			await plain.close();
		}
	});
});

/** An event log that answers each question after up to so many milliseconds, as one behind a network does. */
function createLateLog(delay: number): EventLog {
	const events = createMemoryEventLog();
	let asked = 0;
	const late = <A extends unknown[], R>(
		answer: (...given: A) => Promise<R>,
	): ((...given: A) => Promise<R>) => {
		return async (...given) => {
			asked += 1;
			if (delay > 0) await sleep((asked * 5) % delay);
			return answer(...given);
		};
	};
	const { append, holder, markWritten, openCall } = events;
	return {
		...events,
		append: late(append),
		holder: late(holder),
		markWritten: late(markWritten),
		openCall: late(openCall),
	};
}

function numbersOf({ frames }: Incoming): number[] {
	return frames.map(({ id = "" }) => Number(id.slice(id.lastIndexOf(".") + 1)));
}

function progressOf(message: unknown): number | undefined {
	return (message as { params?: { progress: number } }).params?.progress;
}

/** Whether a promise settles within a time in which it could. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
	return Promise.race([promise.then(() => true), sleep(100).then(() => false)]);
}
