import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RunningCall } from "./calls.ts";
import { type Behind, type Host, startHost } from "./host.ts";
import { type Incoming, openRaw, type RawSession, REVISION, toolCall, UNPRIMED } from "./raw.ts";
import { mint } from "./tokens.ts";

const servers: readonly Behind[] = [
	{ server: "v1", kind: "fastify", transport: "sdk" },
	{ server: "v2", kind: "node", transport: "sdk" },
	{ server: "v1", kind: "node", transport: "own" },
	{ server: "v2", kind: "fastify", transport: "own" },
];

describe.each(servers)("a stream of a $server server (behind $kind, $transport transport)", (options) => {
	let host: Host;
	let wide: string;

	beforeEach(async () => {
		host = await startHost(options);
		wide = await mint("wide");
	});

	afterEach(() => host.close());

	interface Call {
		readonly session: RawSession;
		readonly response: Incoming;
		readonly running: readonly RunningCall[];
		/** Milliseconds since 1970, of the token that the calls were made with. */
		readonly expires: number;
	}

	/** Calls in one POST under a token that is soon to expire. */
	async function shortLived(version: string, ...names: readonly string[]): Promise<Call> {
		const session = await openRaw(host.port, wide, version);
		const expires = Date.now() + 700;
		const token = await mint("wide", { expiresIn: 0.7 });
		const calls = names.map((name, index) => toolCall(index + 1, "fetch", name));
		const response = await session.post(names.length === 1 ? (calls[0] ?? {}) : calls, { token });
		return { session, response, running: await Promise.all(names.map(host.calls.running)), expires };
	}

	describe("when its token has expired", () => {
		test("is cut before the next write, and goes on under another token", async () => {
			const { session, response, running, expires } = await shortLived(REVISION, "a");
			const [a] = running;
			await a?.progress(1);
			await response.has(1);
			passUntil(expires);
			await a?.progress(2);
			expect(await response.ended).toBe("cut");
			expect(response.text).not.toContain("fetch a 2");

			const again = await session.get(response.frames.at(-1)?.id);
			a?.finish();
			expect(await again.has(2)).toMatchObject([{ params: { message: "fetch a 2" } }, { id: 1, result: {} }]);
			expect(await again.ended).toBe("clean");
		});

		test("is cut when nothing is written", async () => {
			const { session, response, running, expires } = await shortLived(REVISION, "a");
			expect(await response.ended).toBe("cut");
			expect(Date.now()).toBeGreaterThanOrEqual(expires);
			expect(response.messages).toEqual([]);
			running[0]?.finish();
			const again = await session.get(response.frames.at(-1)?.id);
			expect(await again.has(1)).toMatchObject([{ id: 1, result: {} }]);
		});

		const expired = { code: -32043, data: { outcome: "reauthenticate", code: "token_expired" } };

		test("and there is no id to come back with, ends with an error for each of its calls", async () => {
			const { response, running, expires } = await shortLived(UNPRIMED, "a", "b");
			passUntil(expires);
			await running[0]?.progress(1);
			expect(await response.ended).toBe("clean");
			expect(response.messages).toMatchObject([
				{ id: 1, error: expired },
				{ id: 2, error: expired },
			]);
			expect(response.text).not.toContain("fetch a 1");
			expect(response.text).not.toContain("id:");
		});

		test("and there is no id to come back with, ends with that error when nothing is written", async () => {
			const { response } = await shortLived(UNPRIMED, "a");
			await response.ended;
			expect(response.messages).toMatchObject([{ id: 1, error: expired }]);
		});
	});

	test.each([
		["is cut", REVISION],
		["ends with an error, without an id to come back with,", UNPRIMED],
	])("%s before a write that its token does not cover", async (how, version) => {
		const session = await openRaw(host.port, wide, version);
		const narrow = await mint("narrow");
		const before = await session.post(toolCall(1, "fetch", "a"));
		const a = await host.calls.running("a");
		a.finish();
		await before.ended;
		// The id is given again, and what the first call emits late follows it.
		const response = await session.post(toolCall(1, "search", "b"), { token: narrow });
		const b = await host.calls.running("b");
		await a.progress(2);
		b.finish();
		expect(await response.ended).toBe(how === "is cut" ? "cut" : "clean");
		expect(response.text).not.toContain("fetch a");
		expect(response.text).not.toContain("result");
		const told = {
			id: 1,
			error: { code: -32043, data: { outcome: "reauthorize", held: { request_id: 1 } } },
		};
		expect(response.messages).toMatchObject(how === "is cut" ? [] : [told]);
		if (how !== "is cut") return;

		const cursor = response.frames.at(-1)?.id;
		const refused = await session.get(cursor, { token: narrow });
		expect(refused.status).toBe(403);
		const again = await session.get(cursor);
		expect(await again.has(2)).toMatchObject([{ params: { message: "fetch a 2" } }, { id: 1, result: {} }]);
	});

	test("is cut when a resume takes it over", async () => {
		const session = await openRaw(host.port, wide);
		const response = await session.post(toolCall(1, "fetch", "a"));
		const a = await host.calls.running("a");
		await a.progress(1);
		await response.has(1);
		const again = await session.get(response.frames.at(-1)?.id);
		expect(await response.ended).toBe("cut");
		await a.progress(2);
		a.finish();
		expect(await again.ended).toBe("clean");
		expect(response.messages).toHaveLength(1);
		expect(again.messages).toMatchObject([{ params: { message: "fetch a 2" } }, { id: 1, result: {} }]);
	});

	test("is not cut by a resume that is refused", async () => {
		const session = await openRaw(host.port, wide);
		const response = await session.post(toolCall(1, "fetch", "a"));
		const a = await host.calls.running("a");
		await a.progress(1);
		await response.has(1);
		const refused = await session.get(response.frames.at(-1)?.id, { token: await mint("narrow") });
		expect(refused.status).toBe(403);
		a.finish();
		expect(await response.ended).toBe("clean");
		expect(await response.has(2)).toMatchObject([
			{ params: { message: "fetch a 1" } },
			{ id: 1, result: {} },
		]);
	});

	test("goes on at the next GET when the server has ended it", async () => {
		const session = await openRaw(host.port, wide);
		const response = await session.post(toolCall(1, "fetch", "a"));
		const a = await host.calls.running("a");
		await a.progress(1);
		await response.has(1);
		a.closeStream();
		expect(await response.ended).toBe("clean");
		await a.progress(2);
		const again = await session.get(response.frames.at(-1)?.id);
		await again.has(1);
		a.finish();
		expect(await again.ended).toBe("clean");
		expect(again.messages).toMatchObject([{ params: { message: "fetch a 2" } }, { id: 1, result: {} }]);
	});
});

/** Lets no timer fire until then. */
function passUntil(time: number): void {
	while (Date.now() <= time);
}
