import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { sessionKey } from "../../src/sessions/key.ts";
import { createMemorySessionStore } from "../../src/sessions/memory.ts";
import { record, sessionStoreSuite } from "./suite.ts";

beforeEach(() => {
	vi.useFakeTimers();
	vi.advanceTimersByTime(1);
});
afterEach(() => {
	vi.useRealTimers();
});

const advance = async (seconds: number) => {
	await vi.advanceTimersByTimeAsync(seconds * 1_000);
};

describe("memory session store", () => {
	sessionStoreSuite(async (limits) => ({ store: createMemorySessionStore(limits), advance }));
});

describe("bounds of the memory session store", () => {
	test("of the ended keys the oldest are forgotten first", async () => {
		const store = createMemorySessionStore({ ended: 2 });
		for (const id of ["a", "b", "c"]) {
			await store.open(record(id));
			await store.end(sessionKey(id));
		}
		expect(await store.open(record("b"))).toBe("exists");
		expect(await store.open(record("c"))).toBe("exists");
		expect(await store.open(record("a"))).toBe("opened");
	});

	test("an ended key is remembered for a day", async () => {
		const store = createMemorySessionStore();
		await store.open(record("a"));
		await store.end(sessionKey("a"));
		await advance(24 * 3_600 - 1);
		expect(await store.open(record("a"))).toBe("exists");
		await advance(2);
		expect(await store.open(record("a"))).toBe("opened");
	});

	test("a session has a hundred slots; those that were asked for least recently go", async () => {
		const store = createMemorySessionStore();
		const key = sessionKey("a");
		await store.open(record("a"));
		for (let n = 0; n <= 100; n += 1) await store.repeated(key, `s${n}`, "x", 60);
		expect(await store.repeated(key, "s1", "x", 60)).toBe(true);
		expect(await store.repeated(key, "s0", "x", 60)).toBe(false);
	});

	const misuse: object[] = [
		{ sessions: 0 },
		{ sessions: 1.5 },
		{ sessionsPerPrincipal: -1 },
		{ idle: Number.NaN },
		{ idle: Number.POSITIVE_INFINITY },
		{ idle: 2_147_483 },
		{ ended: "5" },
		{ sesions: 5 },
		{ constructor: 5 },
	];
	test.each(misuse)("limits %j are misuse", (limits) => {
		expect(() => createMemorySessionStore(limits)).toThrow(TypeError);
	});
});
