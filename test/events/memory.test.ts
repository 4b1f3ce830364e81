import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createMemoryEventLog, EVENT_OVERHEAD } from "../../src/events/memory.ts";
import { A, A2, at, B, eventLogSuite, fill, finishedStream, progress } from "./suite.ts";

beforeEach(() => {
	vi.useFakeTimers();
});
afterEach(() => {
	vi.useRealTimers();
});

const advance = async (seconds: number) => {
	await vi.advanceTimersByTimeAsync(seconds * 1_000);
};

describe("memory event log", () => {
	eventLogSuite(async (limits) => ({ log: createMemoryEventLog(limits), advance }));
});

async function create(limits?: Parameters<typeof createMemoryEventLog>[0]) {
	const log = createMemoryEventLog(limits);
	await log.open(A, "alice");
	await log.open(A2, "alice");
	await log.open(B, "bob");
	return log;
}

describe("books of the memory event log", () => {
	test("an event counts with its message, its id and an overhead", async () => {
		const log = await create();
		const event = progress("漢");
		const id = await log.append(A, "s", event);
		const bytes = Buffer.byteLength(event.message) + id.length + EVENT_OVERHEAD;
		expect(log.stats()).toEqual({ events: 1, bytes, evicted: 0, evictedUnacknowledged: 0 });
	});

	test("what is evicted is counted, and what of it was not acknowledged", async () => {
		const log = await create({ eventsPerPrincipal: 3 });
		const all = await fill(log, A, "s", 3);
		await log.acknowledge(A, at(all, 0));
		await log.append(A, "s", progress("new"));
		expect(log.stats()).toMatchObject({ events: 3, evicted: 1, evictedUnacknowledged: 0 });
		await log.append(A, "s", progress("new"));
		expect(log.stats()).toMatchObject({ events: 3, evicted: 2, evictedUnacknowledged: 1 });
	});

	test("age is counted like any other limit", async () => {
		const log = await create({ age: 10 });
		const all = await fill(log, A, "s", 3);
		await log.acknowledge(A, at(all, 0));
		await finishedStream(log, B, "t", 1);
		await advance(11);
		expect(log.stats()).toEqual({ events: 0, bytes: 0, evicted: 5, evictedUnacknowledged: 4 });
		expect(vi.getTimerCount()).toBe(0);
	});

	test("an age beyond what one timer can wait is waited for", async () => {
		const days = 24 * 3_600;
		const log = await create({ age: 60 * days });
		await fill(log, A, "s", 1);
		await advance(59 * days);
		expect(log.stats().events).toBe(1);
		await advance(2 * days);
		expect(log.stats().events).toBe(0);
	});

	test("a dropped session gives back what it had, and is no eviction", async () => {
		const log = await create({ eventsPerPrincipal: 4, streamsPerPrincipal: 4, openCallsPerPrincipal: 2 });
		await fill(log, A, "s", 3, false);
		await finishedStream(log, A, "t", 1);
		await log.drop(A);
		expect(log.stats()).toEqual({ events: 0, bytes: 0, evicted: 1, evictedUnacknowledged: 1 });
		expect(await log.quota(A2)).toBe("left");
		expect(await fill(log, A2, "s", 4)).toHaveLength(4);
		expect(log.stats()).toMatchObject({ events: 4, evicted: 1 });
	});

	const misuse: object[] = [{ bytes: 0 }, { age: -1 }, { events: 1.5 }, { streams: "5" }, { evnts: 5 }];
	test.each(misuse)("limits %j are misuse", (limits) => {
		expect(() => createMemoryEventLog(limits)).toThrow(TypeError);
	});

	test("a full log with many sessions and streams takes 100,000 appends", async () => {
		const log = createMemoryEventLog({ events: 20_000, eventsPerPrincipal: 200 });
		for (let s = 0; s < 1_000; s += 1) await log.open(`session-${s}`, `principal-${s % 100}`);
		for (let n = 0; n < 100_000; n += 1) await log.append(`session-${n % 1_000}`, `s${n % 7}`, progress("x"));
		expect(log.stats()).toMatchObject({ events: 20_000, evicted: 80_000 });
	});
});
