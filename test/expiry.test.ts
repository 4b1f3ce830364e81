import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createResumeGuard } from "../src/index.ts";
import { atExpiry } from "../src/resume/expiry.ts";

const NOW = 1_796_000_000;
const guard = await createResumeGuard({
	data: { resources: ["https://mcp.example.com"], clock_skew: 5 },
});
const ground = { guard };
const found = (exp: number | undefined) => ({
	facts: {
		request: { method: "POST", transport: "streamable-http", session: "none" } as const,
		...(exp !== undefined && { presented: { exp } }),
	},
});

beforeEach(() => {
	vi.useFakeTimers({ now: NOW * 1000 });
});

afterEach(() => {
	vi.useRealTimers();
});

describe("what is open under a token", () => {
	it("hears when it has expired, skew and all, and not before", () => {
		const expired = vi.fn();
		atExpiry(ground, found(NOW + 60), expired);
		vi.advanceTimersByTime(65_000);
		expect(expired).not.toHaveBeenCalled();
		vi.advanceTimersByTime(1);
		expect(expired).toHaveBeenCalledTimes(1);
	});

	it("hears at once if it has expired already", () => {
		const expired = vi.fn();
		atExpiry(ground, found(NOW - 60), expired);
		vi.advanceTimersByTime(1);
		expect(expired).toHaveBeenCalledTimes(1);
	});

	it("hears nothing if it has been closed, while the others do", () => {
		const [first, second, third] = [vi.fn(), vi.fn(), vi.fn()];
		const closeFirst = atExpiry(ground, found(NOW + 60), first);
		atExpiry(ground, found(NOW + 60), second);
		atExpiry(ground, found(NOW + 61), third);
		closeFirst();
		closeFirst();
		vi.advanceTimersByTime(65_001);
		expect([first, second, third].map(({ mock }) => mock.calls.length)).toEqual([0, 1, 0]);
		vi.advanceTimersByTime(1_000);
		expect(third).toHaveBeenCalledTimes(1);
	});

	it("has one timer for one moment, and none when all is closed", () => {
		const closes = [60, 60, 60, 90].map((left) => atExpiry(ground, found(NOW + left), () => {}));
		expect(vi.getTimerCount()).toBe(2);
		for (const close of closes) close();
		expect(vi.getTimerCount()).toBe(0);
	});

	it("hears of a moment again after everything that waited for it was closed", () => {
		const expired = vi.fn();
		atExpiry(ground, found(NOW + 60), () => {})();
		atExpiry(ground, found(NOW + 60), expired);
		vi.advanceTimersByTime(65_001);
		expect(expired).toHaveBeenCalledTimes(1);
	});

	it("waits for nothing where there is no token", () => {
		atExpiry(ground, found(undefined), () => expect.unreachable());
		expect(vi.getTimerCount()).toBe(0);
	});
});
