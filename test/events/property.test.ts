import fc from "fast-check";
import { expect, test } from "vitest";
import { createMemoryEventLog, EVENT_OVERHEAD, type MemoryEventLog } from "../../src/events/memory.ts";
import { A, A2, B, call, ids, progress, result } from "./suite.ts";

const SESSIONS = [A, A2, B];
const STREAMS = ["_GET_stream", "s.1", "s.2"];

interface Appended {
	readonly id: string;
	readonly session: string;
	readonly stream: string;
	readonly message: string;
	written: boolean;
	acknowledged: boolean;
}

interface Step {
	readonly does: "append" | "respond" | "open" | "cancel" | "write" | "acknowledge";
	readonly session: string;
	readonly stream: string;
	readonly pick: number;
}

const step: fc.Arbitrary<Step> = fc.record({
	does: fc.oneof(
		{ weight: 8, arbitrary: fc.constant("append" as const) },
		{ weight: 4, arbitrary: fc.constantFrom("write" as const, "respond" as const, "open" as const) },
		{ weight: 2, arbitrary: fc.constant("acknowledge" as const) },
		{ weight: 1, arbitrary: fc.constantFrom("cancel" as const) },
	),
	session: fc.constantFrom(...SESSIONS),
	stream: fc.constantFrom(...STREAMS),
	pick: fc.nat(1_000),
});

const steps = fc.array(step, { minLength: 1, maxLength: 120 });
const principalOf = (session: string) => (session === B ? "bob" : "alice");

/** Plays steps against a log and keeps, by hand, what was appended, written and acknowledged. */
async function createPlay(log: MemoryEventLog) {
	const appended: Appended[] = [];
	const open = new Map<string, { session: string; stream: string; id: number }>();
	const opened = new Set<string>();
	/** The responses of calls, by session and request id. */
	const responses = new Map<string, Appended>();
	for (const session of SESSIONS) await log.open(session, principalOf(session));

	const on = (session: string, stream: string) =>
		appended.filter((event) => event.session === session && event.stream === stream);

	return {
		appended,
		on,
		/** Whether the order of eviction would take this event of another principal. */
		mayGo(event: Appended): boolean {
			if (event.acknowledged) return true;
			const calls = [...open.values()].filter(
				(o) => o.session === event.session && o.stream === event.stream,
			);
			const finished = opened.has(`${event.session} ${event.stream}`) && calls.length === 0;
			return finished && on(event.session, event.stream).every(({ written }) => written);
		},
		async play({ does, session, stream, pick }: Step): Promise<void> {
			const upTo = on(session, stream)[pick % Math.max(1, on(session, stream).length)];
			if (does === "append" || does === "respond") {
				const key = [...open.keys()][pick % Math.max(1, open.size)] ?? "";
				const answered = does === "respond" ? open.get(key) : undefined;
				const to = answered ?? { session, stream };
				const event = answered ? result(answered.id) : progress("x".repeat(pick));
				const id = await log.append(to.session, to.stream, event);
				const { message } = event;
				const added = { ...to, id, message, written: false, acknowledged: false };
				appended.push(added);
				if (answered) {
					open.delete(key);
					responses.set(key, added);
				}
			} else if (does === "open") {
				const id = pick % 10;
				const waits = await unwritten(log, appended);
				const done = await log.openStream(session, stream, [call(id)]);
				const key = `${session} ${id}`;
				expect(done).toBe(open.has(key) || waits.has(responses.get(key)?.id ?? "") ? "in_use" : "opened");
				if (done === "opened") {
					open.set(key, { session, stream, id });
					opened.add(`${session} ${stream}`);
				}
			} else if (does === "cancel") {
				await log.closeCall(session, pick % 10);
				open.delete(`${session} ${pick % 10}`);
			} else if (upTo && does === "write") {
				await log.markWritten(session, upTo.id);
				for (const event of on(session, stream).slice(0, on(session, stream).indexOf(upTo) + 1))
					event.written = true;
			} else if (upTo && does === "acknowledge") {
				await log.acknowledge(session, upTo.id);
				for (const event of on(session, stream).slice(0, on(session, stream).indexOf(upTo) + 1)) {
					if (event.written) event.acknowledged = true;
				}
			}
		},
	};
}

/** Those that the log still has, and has sent to nobody. */
async function unwritten(log: MemoryEventLog, appended: readonly Appended[]): Promise<Set<string>> {
	const still = await left(log);
	return new Set(appended.filter(({ id, written }) => !written && still.has(id)).map(({ id }) => id));
}

/** The events that the log still has. */
async function left(log: MemoryEventLog): Promise<Set<string>> {
	const all = new Set<string>();
	for (const session of SESSIONS) {
		for (const stream of STREAMS) {
			for (const id of ids((await log.read(session, stream, undefined, 10_000)).events)) all.add(id);
		}
	}
	return all;
}

test("a retained cursor has all that was appended after it, in order; any other is evicted or ahead", async () => {
	await fc.assert(
		fc.asyncProperty(
			steps,
			fc.integer({ min: 3, max: 20 }),
			fc.integer({ min: 2, max: 20 }),
			async (all, events, own) => {
				const log = createMemoryEventLog({ events, eventsPerPrincipal: own });
				const { appended, on, play } = await createPlay(log);
				for (const one of all) await play(one);
				const still = await left(log);
				for (const cursor of appended) {
					const stream = on(cursor.session, cursor.stream);
					const after = stream.slice(stream.indexOf(cursor) + 1);
					const located = await log.locate(cursor.session, cursor.id);
					const stretch = await log.read(cursor.session, cursor.stream, cursor.id, 10_000);
					const gone = after.filter(({ id }) => !still.has(id));
					expect(ids(stretch.events)).toEqual(after.flatMap(({ id }) => (still.has(id) ? [id] : [])));
					if (!cursor.written) expect(located.position).toBe("ahead");
					else if (located.position === "retained") {
						expect(ids(located.pending)).toEqual(after.map(({ id }) => id));
						expect(stretch.events.map(({ message }) => message)).toEqual(after.map(({ message }) => message));
						expect(stretch.evicted).toBe(false);
					} else {
						expect(located.position).toBe("evicted");
						expect(stretch.evicted).toBe(true);
						const primed = stream.slice(stream.indexOf(cursor) + 1).length > after.length;
						expect(primed || gone.length > 0).toBe(true);
					}
					for (const other of SESSIONS.filter((session) => session !== cursor.session)) {
						expect((await log.locate(other, cursor.id)).position).toMatch(/foreign|unknown/);
					}
				}
			},
		),
		{ numRuns: 150 },
	);
});

test("within its limits a log loses nothing", async () => {
	await fc.assert(
		fc.asyncProperty(steps, async (all) => {
			const log = createMemoryEventLog();
			const { appended, play } = await createPlay(log);
			for (const one of all) await play(one);
			for (const { session, id, written } of appended) {
				expect((await log.locate(session, id)).position).toBe(written ? "retained" : "ahead");
			}
			expect(log.stats()).toMatchObject({ events: appended.length, evicted: 0 });
		}),
	);
});

test("no principal pushes out another's events, but acknowledged ones and finished, written streams", async () => {
	await fc.assert(
		fc.asyncProperty(steps, fc.integer({ min: 2, max: 12 }), async (all, events) => {
			const log = createMemoryEventLog({ events });
			const { appended, mayGo, play } = await createPlay(log);
			for (const one of all) {
				const before = await left(log);
				const kept = appended.filter((event) => before.has(event.id) && !mayGo(event));
				const count = appended.length;
				await play(one);
				const appender = appended.length > count ? appended.at(-1)?.session : undefined;
				const after = await left(log);
				for (const { session, id } of kept) {
					if (!appender || principalOf(session) !== principalOf(appender)) expect(after).toContain(id);
				}
			}
		}),
	);
});

test("the bytes and events that are held never exceed the limits, and are counted right", async () => {
	const limits = {
		bytes: fc.integer({ min: 3_000, max: 12_000 }),
		bytesPerPrincipal: fc.integer({ min: 2_000, max: 12_000 }),
		events: fc.integer({ min: 1, max: 30 }),
		eventsPerPrincipal: fc.integer({ min: 1, max: 30 }),
	};
	await fc.assert(
		fc.asyncProperty(steps, fc.record(limits), async (all, given) => {
			const log = createMemoryEventLog(given);
			const { appended, play } = await createPlay(log);
			const size = ({ id, message }: Appended) => Buffer.byteLength(message) + id.length + EVENT_OVERHEAD;
			for (const one of all) {
				await play(one);
				const { bytes, events } = log.stats();
				expect(bytes).toBeLessThanOrEqual(given.bytes);
				expect(events).toBeLessThanOrEqual(given.events);
			}
			const still = await left(log);
			const held = appended.filter(({ id }) => still.has(id));
			for (const principal of ["alice", "bob"]) {
				const own = held.filter(({ session }) => principalOf(session) === principal);
				expect(own.length).toBeLessThanOrEqual(given.eventsPerPrincipal);
				expect(own.reduce((sum, event) => sum + size(event), 0)).toBeLessThanOrEqual(given.bytesPerPrincipal);
			}
			const { bytes, events, evicted, evictedUnacknowledged } = log.stats();
			expect(events + evicted).toBe(appended.length);
			expect(evictedUnacknowledged).toBeLessThanOrEqual(evicted);
			expect(bytes).toBe(held.reduce((sum, event) => sum + size(event), 0));
			for (const session of SESSIONS) await log.drop(session);
			expect(log.stats()).toMatchObject({ events: 0, bytes: 0, evicted });
		}),
	);
});
