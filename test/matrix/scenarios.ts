import { expect, vi } from "vitest";
import type { Cell, CellOptions, Replay, Started } from "./cell.ts";
import type { Sdk } from "./servers.ts";

export interface Scenario {
	readonly name: string;
	readonly options?: Pick<CellOptions, "data" | "limits" | "refreshes">;
	/** Default: of both. */
	readonly clients?: readonly Sdk[];
	/** Plays it and asserts what came; resolves with whether a call of a stock client had to hang. */
	run(cell: Cell): Promise<"hung" | undefined>;
}

const DROPPED = "POST, wide, 200: 1, 2 fetch b 1; cut";

/** One call that has told of its first step when its line breaks. */
async function dropped(cell: Cell): Promise<Started> {
	const started = only(await cell.start(["fetch", "b"]));
	await started.running.progress(1);
	await cell.received(2);
	await cell.drop();
	return started;
}

async function expectWhole(cell: Cell, { ending }: Started, last: number): Promise<void> {
	expect(await ending).toEqual({ text: "fetch b result" });
	await cell.received(last);
	expect(cell.client.cursor).toBe(cell.id(last));
}

const same: Scenario = {
	name: "drop and resume with the same token",
	async run(cell) {
		const started = await dropped(cell);
		await started.running.progress(2);
		cell.comeBack("wide");
		await cell.received(3);
		await started.running.progress(3);
		started.running.finish();
		await expectWhole(cell, started, 5);
		await cell.resumes(1);
		expect(cell.transcript()).toEqual([
			DROPPED,
			"GET after 2, wide, 200: 2, 3 fetch b 2, 4 fetch b 3, 5 fetch b result; clean",
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b 2", "fetch b 3", "fetch b result"]);
		return undefined;
	},
};

const unnoticed: Scenario = {
	name: "a drop that the host notices late",
	async run(cell) {
		const started = only(await cell.start(["fetch", "b"]));
		await started.running.progress(1);
		await cell.received(2);
		cell.wire.stall(cell.id(2));
		await started.running.progress(2);
		await vi.waitFor(() => expect(cell.wire.bytes).toContain("fetch b 2"));
		await cell.drop();
		started.running.finish();
		cell.comeBack("wide");
		await expectWhole(cell, started, 4);
		await cell.resumes(1);
		expect(cell.transcript()).toEqual([
			DROPPED,
			"GET after 2, wide, 200: 2, 3 fetch b 2, 4 fetch b result; clean",
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b 2", "fetch b result"]);
		return undefined;
	},
};

const twice: Scenario = {
	name: "two drops in a row",
	async run(cell) {
		const started = await dropped(cell);
		cell.comeBack("wide");
		await cell.recorder.until(() => cell.transcript().at(-1) === "GET after 2, wide, 200: 2; open");
		await cell.drop();
		await started.running.progress(2);
		started.running.finish();
		cell.comeBack("wide");
		await expectWhole(cell, started, 4);
		await cell.resumes(2);
		expect(cell.transcript()).toEqual([
			DROPPED,
			"GET after 2, wide, 200: 2; cut",
			"GET after 2, wide, 200: 2, 3 fetch b 2, 4 fetch b result; clean",
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b 2", "fetch b result"]);
		return undefined;
	},
};

const beforeFirst: Scenario = {
	name: "a drop before the first event",
	async run(cell) {
		const started = only(await cell.start(["fetch", "b"]));
		await cell.drop();
		await started.running.progress(1);
		cell.comeBack("wide");
		await cell.received(2);
		started.running.finish();
		await expectWhole(cell, started, 3);
		await cell.resumes(1);
		expect(cell.transcript()).toEqual([
			"POST, wide, 200: 1; cut",
			"GET after 1, wide, 200: 1, 2 fetch b 1, 3 fetch b result; clean",
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		return undefined;
	},
};

const unheard: Scenario = {
	name: "a result produced while nobody listens",
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started);
		cell.comeBack("wide");
		await expectWhole(cell, started, 3);
		await cell.resumes(1);
		expect(cell.transcript()).toEqual([DROPPED, "GET after 2, wide, 200: 2, 3 fetch b result; clean"]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		return undefined;
	},
};

/**
 * Two calls in one POST, `a` of what a narrow token covers and `b` of what it does not. After `a 1` the line breaks, and
 * while it is broken both end. The client comes back with the narrow token.
 */
async function narrowed(cell: Cell): Promise<readonly [Started, Started]> {
	const [a, b] = await cell.start(["search", "a"], ["fetch", "b"]);
	if (a === undefined || b === undefined) throw new Error("two calls");
	await a.running.progress(1);
	await cell.received(2);
	await cell.drop();
	await a.running.progress(2);
	await b.running.progress(1);
	await finish(cell, b);
	await finish(cell, a);
	cell.comeBack("narrow");
	return [a, b];
}

/** How a narrow client is refused in stages, where its cursor is then, and what it has been given. */
const refusals: Record<
	Replay,
	{ readonly cursor: number; readonly lines: readonly string[]; readonly given: readonly string[] }
> = {
	atomic: {
		cursor: 2,
		given: ["search a 1", "error -32043 of a", "error -32043 of b"],
		lines: [
			"POST, wide, 200: 1, 2 search a 1; cut",
			"GET after 2, narrow, 403",
			"GET after 2, narrow, 200: refusal, error -32043 of a, error -32043 of b; clean",
		],
	},
	prefix: {
		cursor: 3,
		given: ["search a 1", "search a 2", "error -32043 of b", "error -32043 of a"],
		lines: [
			"POST, wide, 200: 1, 2 search a 1; cut",
			"GET after 2, narrow, 200: 2, 3 search a 2, refusal; clean",
			"GET after 3, narrow, 403",
			"GET after 3, narrow, 200: refusal, error -32043 of b, error -32043 of a; clean",
		],
	},
};

/** What is after each number on the stream of `narrowed`: on the wire, and for the client. */
const rest: Record<number, { readonly line: string; readonly given: readonly string[] }> = {
	2: {
		line: "2, 3 search a 2, 4 fetch b 1, 5 fetch b result, 6 search a result; clean",
		given: ["search a 2", "fetch b 1", "fetch b result", "search a result"],
	},
	3: {
		line: "3, 4 fetch b 1, 5 fetch b result, 6 search a result; clean",
		given: ["fetch b 1", "fetch b result", "search a result"],
	},
};

async function expectRefused(cell: Cell, calls: readonly Started[]): Promise<void> {
	const { cursor, lines, given } = refusals[cell.replay];
	for (const { ending } of calls) {
		expect((await ending).error).toMatchObject({
			code: -32043,
			data: {
				outcome: "reauthorize",
				code: "audience_not_covered",
				deliver: 0,
				cursor: cell.id(cursor),
				held: {
					event_id: cell.id(4),
					tool: "fetch",
					missing: { aud: ["https://mcp.example.com/tools/fetch"], scope: [] },
				},
			},
		});
	}
	expect(cell.client.cursor).toBe(cell.id(cursor));
	await cell.resumes(lines.length - 1);
	expect(cell.transcript()).toEqual(lines);
	expect(cell.given()).toEqual(given);
	expect(cell.wire.bytes).not.toContain("fetch b");
}

const narrower: Scenario = {
	name: "resume with a narrower token",
	async run(cell) {
		const calls = await narrowed(cell);
		await expectRefused(cell, calls);
		return undefined;
	},
};

const widerInTime: Scenario = {
	name: "a wider token after the refusal, before the client tries again",
	async run(cell) {
		cell.onRefusal = () => {
			expect(cell.wire.bytes).not.toContain("fetch b");
			cell.use("wide");
		};
		const [a, b] = await narrowed(cell);
		expect(await b.ending).toEqual({ text: "fetch b result" });
		expect(await a.ending).toEqual({ text: "search a result" });
		const { cursor, lines } = refusals[cell.replay];
		await cell.resumes(lines.length - 1);
		expect(cell.transcript()).toEqual([
			...lines.slice(0, -1),
			`GET after ${cursor}, wide, 200: ${rest[cursor]?.line}`,
		]);
		expect(cell.given()).toEqual([
			"search a 1",
			"search a 2",
			"fetch b 1",
			"fetch b result",
			"search a result",
		]);
		expect(cell.client.cursor).toBe(cell.id(6));
		return undefined;
	},
};

const narrowerAgain: Scenario = {
	name: "a narrower token again after the refusal, by hand",
	async run(cell) {
		const calls = await narrowed(cell);
		await expectRefused(cell, calls);
		const { cursor, lines, given } = refusals[cell.replay];
		const again = cell.client.call("fetch", "b", { cursor: cell.client.cursor });
		await cell.resumes(lines.length);
		expect(cell.given().slice(given.length)).toEqual(
			Array(2).fill(expect.stringMatching(/^error -32043 of /)),
		);
		expect(cell.transcript()).toEqual([...lines, ...lines.slice(-1)]);
		expect(cell.client.cursor).toBe(cell.id(cursor));
		expect(cell.wire.bytes).not.toContain("fetch b");
		if (cell.clientSdk === "v2") {
			expect((await again).error).toMatchObject({ code: -32043, data: { held: { event_id: cell.id(4) } } });
			return undefined;
		}
		// It gives the id of the new call to results only, so that the error is of a call that has ended.
		await cell.expectPending(again);
		return "hung";
	},
};

const widerByHand: Scenario = {
	name: "a wider token after the refusal, by hand",
	async run(cell) {
		const calls = await narrowed(cell);
		await expectRefused(cell, calls);
		const { cursor, lines, given } = refusals[cell.replay];
		cell.use("wide");
		const again = cell.client.call("fetch", "b", { cursor: cell.client.cursor });
		expect(await again).toEqual({ text: "fetch b result" });
		await cell.resumes(lines.length);
		expect(cell.transcript()).toEqual([...lines, `GET after ${cursor}, wide, 200: ${rest[cursor]?.line}`]);
		expect(cell.given()).toEqual([...given, ...(rest[cursor]?.given ?? [])]);
		// Neither client tells the application of cursors on a stream that was taken up like this.
		expect(cell.client.cursor).toBe(cell.id(cursor));
		return undefined;
	},
};

const expired: Scenario = {
	name: "an expired token",
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started);
		cell.comeBack("expired");
		await cell.expectHang(started.ending);
		const refused = [DROPPED, "GET after 2, expired, 401", "GET after 2, expired, 401"];
		expect(cell.transcript()).toEqual(refused);
		expect(cell.client.cursor).toBe(cell.id(2));
		expect(cell.wire.bytes).not.toContain("fetch b result");

		// The application has a new one.
		cell.use("wide");
		await cell.client.resume(cell.client.cursor);
		await expectWhole(cell, started, 3);
		await cell.resumes(3);
		expect(cell.transcript()).toEqual([...refused, "GET after 2, wide, 200: 2, 3 fetch b result; clean"]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		return "hung";
	},
};

const refreshed: Scenario = {
	name: "an expired token that the client refreshes",
	// A client of v1 asks again without its cursor.
	clients: ["v2"],
	options: { refreshes: true },
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started);
		cell.comeBack("expired");
		await expectWhole(cell, started, 3);
		await cell.resumes(2);
		expect(cell.transcript()).toEqual([
			DROPPED,
			"GET after 2, expired, 401",
			"GET after 2, wide, 200: 2, 3 fetch b result; clean",
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		return undefined;
	},
};

const evicted: Scenario = {
	name: "an evicted cursor",
	options: { limits: { age: 1 } },
	async run(cell) {
		const started = await dropped(cell);
		await started.running.progress(2);
		await vi.waitFor(() => expect(cell.events.stats().evictedUnacknowledged).toBeGreaterThan(0), {
			timeout: 5_000,
		});
		await vi.waitFor(() => expect(cell.events.stats().events).toBe(0), { timeout: 5_000 });
		await finish(cell, started);
		cell.comeBack("wide");
		expect((await started.ending).error).toMatchObject({
			code: -32043,
			data: { outcome: "reissue", code: "cursor_evicted", session: "keep", deliver: 0, cursor: cell.id(2) },
		});
		const told = "GET after 2, wide, 200: refusal, error -32043 of b; clean";
		await cell.resumes(1);
		expect(cell.transcript()).toEqual([DROPPED, told]);
		expect(cell.given()).toEqual(["fetch b 1", "error -32043 of b"]);
		expect(cell.client.cursor).toBe(cell.id(2));
		expect(cell.wire.bytes).not.toContain("fetch b result");
		// The session lives.
		const { ending, running } = only(await cell.start(["fetch", "c"]));
		running.finish();
		expect(await ending).toEqual({ text: "fetch c result" });
		return undefined;
	},
};

const strangerEnds: Scenario = {
	name: "another principal, which ends the session",
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started);
		cell.comeBack("stranger");
		await cell.expectHang(started.ending);
		expect(cell.transcript()).toEqual([DROPPED, "GET after 2, stranger, 403", "GET after 2, stranger, 404"]);
		expect(cell.client.cursor).toBe(cell.id(2));
		expect(cell.given()).toEqual(["fetch b 1"]);
		cell.use("wide");
		await expect(cell.client.ping()).rejects.toThrow("Session not found");
		await expect(cell.client.resume(cell.client.cursor)).rejects.toThrow("Not Found");
		expect(cell.wire.bytes).not.toContain("fetch b result");
		return "hung";
	},
};

const strangerKept: Scenario = {
	name: "another principal, and the session is kept",
	options: { data: { foreign_principal: "keep" } },
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started);
		cell.comeBack("stranger");
		await cell.expectHang(started.ending);
		const refused = [DROPPED, "GET after 2, stranger, 404", "GET after 2, stranger, 404"];
		expect(cell.transcript()).toEqual(refused);
		expect(cell.client.cursor).toBe(cell.id(2));
		expect(cell.wire.bytes).not.toContain("fetch b result");

		// The owner is back.
		cell.use("wide");
		await cell.client.resume(cell.client.cursor);
		await expectWhole(cell, started, 3);
		await cell.resumes(3);
		expect(cell.transcript()).toEqual([...refused, "GET after 2, wide, 200: 2, 3 fetch b result; clean"]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		return "hung";
	},
};

export const scenarios: readonly Scenario[] = [
	same,
	unnoticed,
	twice,
	beforeFirst,
	unheard,
	narrower,
	narrowerAgain,
	widerInTime,
	widerByHand,
	expired,
	refreshed,
	evicted,
	strangerEnds,
	strangerKept,
];

/** Ends a call; resolves when its result is in the event log. */
async function finish(cell: Cell, { running }: Started): Promise<void> {
	running.finish();
	await vi.waitFor(async () => expect(await cell.isOpen(running)).toBe(false));
}

function only(calls: readonly Started[]): Started {
	const [call] = calls;
	if (call === undefined) throw new Error("no call");
	return call;
}
