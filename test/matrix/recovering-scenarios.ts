import { expect, vi } from "vitest";
import type { Replay } from "./cell.ts";
import { finish, type RecoveringCell, type RecoveringCellOptions, type Started } from "./recovering-cell.ts";

export interface RecoveringScenario {
	readonly name: string;
	readonly options?: Pick<RecoveringCellOptions, "data" | "limits" | "mayRepeat" | "recoveryTimeout">;
	/** Plays it and asserts what came. */
	run(cell: RecoveringCell): Promise<void>;
}

const DROPPED = "POST, wide, 200: 1, 2 fetch b 1; cut";
const FETCH = "https://mcp.example.com/tools/fetch";

/** One call that has told of its first step when its line breaks. */
async function dropped(cell: RecoveringCell): Promise<Started> {
	const started = only(await cell.start(["fetch", "b"]));
	await started.running.progress(1);
	await cell.received(2);
	await cell.drop();
	return started;
}

async function expectResult({ settled }: Started, text: string): Promise<void> {
	expect(await settled).toEqual({ text, took: expect.any(Number) });
}

/** That the session, or the next one, is good for another call. */
async function expectUsable(cell: RecoveringCell, sessions: number): Promise<void> {
	const next = only(await cell.start(["fetch", "c"]));
	next.running.finish();
	await expectResult(next, "fetch c result");
	expect(cell.connected).toHaveLength(sessions);
}

const same: RecoveringScenario = {
	name: "drop and resume with the same token",
	async run(cell) {
		const started = await dropped(cell);
		await started.running.progress(2);
		cell.comeBack();
		await cell.received(3);
		await started.running.progress(3);
		started.running.finish();
		await expectResult(started, "fetch b result");
		expect(cell.transcript()).toEqual([
			DROPPED,
			expect.stringContaining("GET after 2, wide, 200: 2, 3 fetch b 2, 4 fetch b 3, 5 fetch b result; "),
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b 2", "fetch b 3", "fetch b result"]);
		expect(cell.steps()).toEqual(["dropped", "resumed"]);
	},
};

const unnoticed: RecoveringScenario = {
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
		cell.comeBack();
		await expectResult(started, "fetch b result");
		expect(cell.transcript()).toEqual([
			DROPPED,
			expect.stringContaining("GET after 2, wide, 200: 2, 3 fetch b 2, 4 fetch b result; "),
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b 2", "fetch b result"]);
		expect(cell.steps()).toEqual(["dropped", "resumed"]);
	},
};

const twice: RecoveringScenario = {
	name: "two drops in a row",
	async run(cell) {
		const started = await dropped(cell);
		cell.comeBack();
		await cell.recorder.until(() => cell.transcript().at(-1) === "GET after 2, wide, 200: 2; open");
		await cell.drop();
		await started.running.progress(2);
		started.running.finish();
		cell.comeBack();
		await expectResult(started, "fetch b result");
		expect(cell.transcript()).toEqual([
			DROPPED,
			"GET after 2, wide, 200: 2; cut",
			expect.stringContaining("GET after 2, wide, 200: 2, 3 fetch b 2, 4 fetch b result; "),
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b 2", "fetch b result"]);
		expect(cell.steps()).toEqual(["dropped", "resumed", "dropped", "resumed"]);
	},
};

const beforeFirst: RecoveringScenario = {
	name: "a drop before the first event",
	async run(cell) {
		const started = only(await cell.start(["fetch", "b"]));
		await cell.drop();
		await started.running.progress(1);
		cell.comeBack();
		await cell.received(2);
		started.running.finish();
		await expectResult(started, "fetch b result");
		expect(cell.transcript()).toEqual([
			"POST, wide, 200: 1; cut",
			expect.stringContaining("GET after 1, wide, 200: 1, 2 fetch b 1, 3 fetch b result; "),
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		expect(cell.steps()).toEqual(["dropped", "resumed"]);
	},
};

const unheard: RecoveringScenario = {
	name: "a result produced while nobody listens",
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started.running);
		cell.comeBack();
		await expectResult(started, "fetch b result");
		expect(cell.transcript()).toEqual([
			DROPPED,
			expect.stringContaining("GET after 2, wide, 200: 2, 3 fetch b result; "),
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		expect(cell.steps()).toEqual(["dropped", "resumed"]);
	},
};

const down: RecoveringScenario = {
	name: "a line that stays down",
	options: { recoveryTimeout: 1_000 },
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started.running);
		expect(await started.settled).toMatchObject({
			error: { code: "recovery_timeout", mayHaveRun: true, method: "tools/call", tool: "fetch" },
		});
		expect(cell.transcript()).toEqual([DROPPED]);
		expect(cell.given()).toEqual(["fetch b 1", "error -32043 of b"]);
		expect(cell.steps()).toEqual(["dropped", "failed recovery_timeout"]);
		expect(cell.wire.bytes).not.toContain("fetch b result");
		cell.comeBack();
		await expectUsable(cell, 1);
	},
};

/**
 * Two calls in one POST, `a` of what a narrow token covers and `b` of what it does not. After `a 1` the line breaks, and
 * while it is broken both end, and the token expires. The application has a narrow one for it, and `wider` when it is
 * asked for what is missing.
 */
async function narrowed(
	cell: RecoveringCell,
	wider: "wide" | undefined,
): Promise<readonly [Started, Started]> {
	const [a, b] = await cell.start(["search", "a"], ["fetch", "b"]);
	if (a === undefined || b === undefined) throw new Error("two calls");
	await a.running.progress(1);
	await cell.received(2);
	await cell.drop();
	await a.running.progress(2);
	await b.running.progress(1);
	await finish(cell, b.running);
	await finish(cell, a.running);
	cell.token = ({ required }) => {
		expect(cell.wire.bytes).not.toContain("fetch b");
		return required === undefined ? "narrow" : wider;
	};
	cell.expire();
	cell.comeBack();
	return [a, b];
}

/** How a narrow client is refused, where its cursor is then, what it has been given, and what the rest is. */
const refusals: Record<
	Replay,
	{
		readonly cursor: number;
		readonly lines: readonly string[];
		readonly given: readonly string[];
		readonly steps: readonly string[];
		readonly rest: string;
	}
> = {
	atomic: {
		cursor: 2,
		lines: ["POST, wide, 200: 1, 2 search a 1; cut", "GET after 2, expired, 401", "GET after 2, narrow, 403"],
		given: ["search a 1"],
		steps: [
			"dropped",
			"refused reauthenticate",
			"token reauthenticate",
			"refused reauthorize",
			"token reauthorize",
		],
		rest: "GET after 2, wide, 200: 2, 3 search a 2, 4 fetch b 1, 5 fetch b result, 6 search a result; ",
	},
	prefix: {
		cursor: 3,
		lines: [
			"POST, wide, 200: 1, 2 search a 1; cut",
			"GET after 2, expired, 401",
			"GET after 2, narrow, 200: 2, 3 search a 2, refusal",
		],
		given: ["search a 1", "search a 2"],
		steps: [
			"dropped",
			"refused reauthenticate",
			"token reauthenticate",
			"resumed",
			"refused reauthorize",
			"token reauthorize",
		],
		rest: "GET after 3, wide, 200: 3, 4 fetch b 1, 5 fetch b result, 6 search a result; ",
	},
};

const narrower: RecoveringScenario = {
	name: "a narrower token, and the application has none wider",
	async run(cell) {
		const calls = await narrowed(cell, undefined);
		const { cursor, lines, given, steps } = refusals[cell.options.replay];
		for (const [index, { settled }] of calls.entries()) {
			expect(await settled).toMatchObject({
				error: {
					code: "not_authorized",
					outcome: "reauthorize",
					mayHaveRun: true,
					method: "tools/call",
					tool: ["search", "fetch"][index],
					decision: {
						code: "audience_not_covered",
						cursor: cell.id(cursor),
						held: { event_id: cell.id(4), tool: "fetch", missing: { aud: [FETCH], scope: [] } },
					},
				},
			});
		}
		expect(cell.asked).toEqual(["start", "reauthenticate", expect.arrayContaining([FETCH])]);
		expect(cell.transcript()).toEqual(lines);
		expect(cell.given()).toEqual([...given, "error -32043 of a", "error -32043 of b"]);
		expect(cell.steps()).toEqual([...steps, "failed not_authorized"]);
		expect(cell.wire.bytes).not.toContain("fetch b");
	},
};

const wider: RecoveringScenario = {
	name: "a narrower token, and the application has a wider one when it is asked",
	async run(cell) {
		const [a, b] = await narrowed(cell, "wide");
		await expectResult(a, "search a result");
		await expectResult(b, "fetch b result");
		const { lines, rest, steps } = refusals[cell.options.replay];
		expect(cell.asked).toEqual(["start", "reauthenticate", expect.arrayContaining([FETCH])]);
		expect(cell.transcript()).toEqual([...lines, expect.stringContaining(rest)]);
		expect(cell.given()).toEqual([
			"search a 1",
			"search a 2",
			"fetch b 1",
			"fetch b result",
			"search a result",
		]);
		expect(cell.steps()).toEqual([...steps, "resumed"]);
	},
};

const refreshed: RecoveringScenario = {
	name: "an expired token, and the application has a fresh one",
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started.running);
		cell.token = () => {
			expect(cell.wire.bytes).not.toContain("fetch b result");
			return "wide";
		};
		cell.expire();
		cell.comeBack();
		await expectResult(started, "fetch b result");
		expect(cell.asked).toEqual(["start", "reauthenticate"]);
		expect(cell.transcript()).toEqual([
			DROPPED,
			"GET after 2, expired, 401",
			expect.stringContaining("GET after 2, wide, 200: 2, 3 fetch b result; "),
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		expect(cell.steps()).toEqual(["dropped", "refused reauthenticate", "token reauthenticate", "resumed"]);
	},
};

const expired: RecoveringScenario = {
	name: "an expired token, and the application has no other",
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started.running);
		cell.expire();
		cell.comeBack();
		expect(await started.settled).toMatchObject({
			error: { code: "not_authorized", outcome: "reauthenticate", status: 401, mayHaveRun: true },
		});
		expect(cell.asked).toEqual(["start", "reauthenticate"]);
		expect(cell.transcript()).toEqual([DROPPED, "GET after 2, expired, 401"]);
		expect(cell.given()).toEqual(["fetch b 1", "error -32043 of b"]);
		expect(cell.steps()).toEqual([
			"dropped",
			"refused reauthenticate",
			"token reauthenticate",
			"failed not_authorized",
		]);
		expect(cell.wire.bytes).not.toContain("fetch b result");
		// It has one later.
		cell.token = () => "wide";
		await expectUsable(cell, 1);
	},
};

/** A call whose cursor is gone, and whose result is there, when its client comes back. */
async function evicted(cell: RecoveringCell): Promise<Started> {
	const started = await dropped(cell);
	await started.running.progress(2);
	await vi.waitFor(() => expect(cell.events.stats().evictedUnacknowledged).toBeGreaterThan(0), {
		timeout: 5_000,
	});
	await vi.waitFor(() => expect(cell.events.stats().events).toBe(0), { timeout: 5_000 });
	await finish(cell, started.running);
	cell.comeBack();
	return started;
}

/** A call whose session someone else has ended, when its client comes back. */
async function intruded(cell: RecoveringCell): Promise<Started> {
	const started = await dropped(cell);
	await finish(cell, started.running);
	const intruder = await cell.intrude(2);
	expect(intruder.status).toBe(403);
	expect(intruder.text).not.toContain("fetch b");
	cell.comeBack();
	return started;
}

/** Ways in which a result is lost for good. */
const losses: readonly {
	readonly name: string;
	readonly options?: RecoveringScenario["options"];
	readonly lose: (cell: RecoveringCell) => Promise<Started>;
	readonly error: object;
	readonly line: string;
	readonly steps: readonly string[];
	/** What is between the failure and the repetition. */
	readonly between: readonly string[];
	/** How many there are in the end. */
	readonly sessions: number;
}[] = [
	{
		name: "an evicted cursor",
		options: { limits: { age: 1 } },
		lose: evicted,
		error: { outcome: "reissue", decision: { code: "cursor_evicted", session: "keep" } },
		line: "GET after 2, wide, 200: refusal",
		steps: ["dropped", "resumed", "refused reissue", "failed result_lost"],
		between: [],
		sessions: 1,
	},
	{
		name: "another principal, which ends the session",
		lose: intruded,
		error: { outcome: "reinitialize", status: 404 },
		line: "GET after 2, wide, 404",
		steps: ["dropped", "refused reinitialize", "failed result_lost"],
		between: ["reinitialized"],
		sessions: 2,
	},
];

const lost = losses.flatMap(
	({ name, options, lose, error, line, steps, between, sessions }): RecoveringScenario[] => {
		const failure = { code: "result_lost", mayHaveRun: true, method: "tools/call", tool: "fetch", ...error };

		function expectLost(cell: RecoveringCell): void {
			expect(cell.transcript()).toEqual([DROPPED, line]);
			expect(cell.questions).toMatchObject([{ method: "tools/call", tool: "fetch", error: failure }]);
			expect(cell.wire.bytes).not.toMatch(/fetch b (?:2|result)/);
		}

		return [
			{
				name: `${name}: the call may not be made again`,
				options: { ...options, mayRepeat: false },
				async run(cell) {
					const { settled } = await lose(cell);
					expect(await settled).toMatchObject({ error: failure });
					expectLost(cell);
					expect(cell.given()).toEqual(["fetch b 1", "error -32043 of b"]);
					expect(cell.steps()).toEqual([...steps, ...between]);
					await expectUsable(cell, sessions);
				},
			},
			{
				name: `${name}: the call may be made again`,
				options: { ...options, mayRepeat: true },
				async run(cell) {
					const started = await lose(cell);
					const again = await cell.repetition("b");
					await again.progress(1);
					again.finish();
					await expectResult(started, "fetch b2 result");
					expectLost(cell);
					expect(cell.transcript(1)).toEqual([
						expect.stringContaining("POST, wide, 200: 1, 2 fetch b2 1, 3 fetch b2 result; "),
					]);
					expect(cell.given()).toEqual(["fetch b 1", "error -32043 of b", "fetch b2 1", "fetch b2 result"]);
					expect(cell.steps()).toEqual([...steps, ...between, "repeated"]);
					expect(cell.connected).toHaveLength(sessions);
				},
			},
		];
	},
);

const strangerKept: RecoveringScenario = {
	name: "another principal, and the session is kept",
	options: { data: { foreign_principal: "keep" } },
	async run(cell) {
		const started = await dropped(cell);
		await finish(cell, started.running);
		const intruder = await cell.intrude(2);
		expect(intruder.status).toBe(404);
		expect(intruder.text).not.toContain("fetch b");
		cell.comeBack();
		await expectResult(started, "fetch b result");
		expect(cell.transcript()).toEqual([
			DROPPED,
			expect.stringContaining("GET after 2, wide, 200: 2, 3 fetch b result; "),
		]);
		expect(cell.given()).toEqual(["fetch b 1", "fetch b result"]);
		expect(cell.steps()).toEqual(["dropped", "resumed"]);
		expect(cell.connected).toHaveLength(1);
	},
};

export const scenarios: readonly RecoveringScenario[] = [
	same,
	unnoticed,
	twice,
	beforeFirst,
	unheard,
	down,
	narrower,
	wider,
	refreshed,
	expired,
	...lost,
	strangerKept,
];

function only(calls: readonly Started[]): Started {
	const [call] = calls;
	if (call === undefined) throw new Error("no call");
	return call;
}
