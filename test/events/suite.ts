import { expect, test } from "vitest";
import type { ResumeGuardError } from "../../src/errors.ts";
import type { Call, EventHeader, EventLog, NewEvent } from "../../src/events/log.ts";
import type { EventLogLimits } from "../../src/events/room.ts";
import type { Label, RequestId } from "../../src/generated/types.ts";
import { warned } from "../sessions/suite.ts";

/** A log to test, empty, and how time passes for it. */
export interface EventLogHarness {
	readonly log: EventLog;
	advance(seconds: number): Promise<void>;
}

export const A = "session-a";
export const A2 = "session-a2";
export const B = "session-b";

export const label = (tool: string): Label => ({
	tool,
	aud: [`https://mcp.example.com/tools/${tool}`],
	scope: [],
});
export const SEARCH = label("search");
export const FETCH = label("fetch");

export function call(request_id: RequestId, of: Label = SEARCH): Call {
	return { request_id, label: of };
}

export function progress(text: string, request_id?: RequestId): NewEvent {
	const message = JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: { text } });
	return request_id === undefined ? { message, label: SEARCH } : { message, label: SEARCH, request_id };
}

export function result(request_id: RequestId, text = "done"): NewEvent {
	const message = JSON.stringify({ jsonrpc: "2.0", id: request_id, result: { text } });
	return { message, label: SEARCH, request_id, terminal: true };
}

export const ids = (events: readonly EventHeader[]): string[] => events.map(({ id }) => id);

async function appendAll(
	log: EventLog,
	session: string,
	stream: string,
	...events: NewEvent[]
): Promise<string[]> {
	const all: string[] = [];
	for (const event of events) all.push(await log.append(session, stream, event));
	return all;
}

/** `count` events, written unless told otherwise. */
export async function fill(
	log: EventLog,
	session: string,
	stream: string,
	count: number,
	written = true,
): Promise<string[]> {
	const events = Array.from({ length: count }, (_, n) => progress(`${n}`));
	const all = await appendAll(log, session, stream, ...events);
	const last = all.at(-1);
	if (written && last) await log.markWritten(session, last);
	return all;
}

/** A stream of one call with its response, written: two events. */
export async function finishedStream(
	log: EventLog,
	session: string,
	stream: string,
	id: RequestId,
): Promise<string[]> {
	await log.openStream(session, stream, [call(id)]);
	const all = await appendAll(log, session, stream, progress("working", id), result(id));
	await log.markWritten(session, all.at(-1) ?? "");
	return all;
}

export function at<T>(items: readonly T[], index: number): T {
	const item = items.at(index);
	if (item === undefined) throw new Error(`there is no item ${index}`);
	return item;
}

async function position(log: EventLog, session: string, cursor: string): Promise<string> {
	return (await log.locate(session, cursor)).position;
}

/** How many of these ids, which are those of a stream's events in order, have been written. */
async function written(log: EventLog, session: string, all: readonly string[]): Promise<number> {
	const positions = await Promise.all(all.map((id) => position(log, session, id)));
	const ahead = positions.indexOf("ahead");
	return ahead === -1 ? all.length : ahead;
}

async function retained(log: EventLog, session: string, stream: string): Promise<string[]> {
	return ids((await log.read(session, stream, undefined, 1_000)).events);
}

const ended = { name: "ResumeGuardError", code: "session_ended" } satisfies Partial<ResumeGuardError>;

/** What every event log has to do. */
export function eventLogSuite(
	createHarness: (limits?: Partial<EventLogLimits>) => Promise<EventLogHarness>,
): void {
	/** A log in which the sessions `A`, `A2` (of one principal) and `B` are open. */
	async function create(limits?: Partial<EventLogLimits>): Promise<EventLogHarness> {
		const harness = await createHarness(limits);
		await harness.log.open(A, "alice");
		await harness.log.open(A2, "alice");
		await harness.log.open(B, "bob");
		return harness;
	}

	test("many events of one moment keep their order", async () => {
		const { log } = await create();
		const all = await Promise.all(Array.from({ length: 50 }, (_, n) => log.append(A, "s", progress(`${n}`))));
		const { events, evicted, finished } = await log.read(A, "s", undefined, 1_000);
		expect(ids(events)).toEqual(all);
		expect(events.map(({ message }) => JSON.parse(message).params.text)).toEqual(all.map((_, n) => `${n}`));
		expect({ evicted, finished }).toEqual({ evicted: false, finished: false });
	});

	test.each([
		"_GET_stream",
		"a.b",
		"a.b.",
		"..",
		"7",
		"a_1_2",
		"__proto__",
		"x.AAAAAAAAAAAAAAAA.3",
		"z".repeat(512),
	])("the name of a stream is opaque: %s", async (name) => {
		const { log } = await create();
		const all = await fill(log, A, name, 3);
		const others = await fill(log, A, `${name}.1`.slice(-512), 3);
		const located = await log.locate(A, at(all, 0));
		expect(located).toEqual({
			position: "retained",
			stream: name,
			pending: [
				{ id: at(all, 1), label: SEARCH },
				{ id: at(all, 2), label: SEARCH },
			],
			open: [],
		});
		expect(new Set([...all, ...others]).size).toBe(6);
	});

	test.each(["", "a b", "a\nb", "a\0b", "é", "\ud800", "z".repeat(513)])(
		"a name that could not be part of an id is misuse: %j",
		async (name) => {
			const { log } = await create();
			await expect(log.append(A, name, progress("x"))).rejects.toThrow(TypeError);
			await expect(log.openStream(A, name, [])).rejects.toThrow(TypeError);
		},
	);

	test("events come back as they were appended", async () => {
		const { log } = await create();
		const message = '{"jsonrpc":"2.0","id":7,"result":{"text":"\u2028 é 漢 \\ud800 "}}';
		await log.append(A, "s", { message, label: FETCH, request_id: 7, terminal: true });
		const { events } = await log.read(A, "s", undefined, 10);
		expect(events).toEqual([{ id: expect.any(String), message, label: FETCH, request_id: 7 }]);
	});

	test("headers have no payload", async () => {
		const { log } = await create();
		const all = await fill(log, A, "s", 2);
		const located = await log.locate(A, at(all, 0));
		const claimed = await log.unacknowledged(A, at(all, 1));
		for (const header of [...(located.position === "retained" ? located.pending : []), ...claimed]) {
			expect(Object.keys(header).toSorted()).toEqual(["id", "label"]);
		}
	});

	test("a stream starts with an id of its own, which is no event, and later with what is acknowledged", async () => {
		const { log } = await create();
		await log.openStream(A, "s", [call(1)]);
		const start = await log.start(A, "s");
		expect(await log.locate(A, start)).toEqual({
			position: "retained",
			stream: "s",
			pending: [],
			open: [call(1)],
		});
		const all = await appendAll(log, A, "s", progress("1", 1), result(1));
		expect(all).not.toContain(start);
		const located = await log.locate(A, start);
		expect(located.position === "retained" && ids(located.pending)).toEqual(all);
		expect(ids((await log.read(A, "s", start, 10)).events)).toEqual(all);
		expect(await written(log, A, all)).toBe(0);
		await log.markWritten(A, at(all, 0));
		expect(await log.start(A, "s")).toBe(start);
		expect(ids(await log.unacknowledged(A, at(all, 1)))).toEqual([all[0]]);
		await log.acknowledge(A, at(all, 1));
		expect(await log.start(A, "s")).toBe(all[0]);
	});

	test("the start of a stream is evicted when its first event is, and there is none in a session that has ended", async () => {
		const { log } = await create({ eventsPerPrincipal: 2 });
		const start = await log.start(A, "s");
		await fill(log, A, "s", 3);
		expect(await position(log, A, start)).toBe("evicted");
		expect(await log.read(A, "s", start, 10)).toMatchObject({ evicted: true });
		await log.drop(A);
		await expect(log.start(A, "s")).rejects.toMatchObject(ended);
		await expect(log.start("never", "s")).rejects.toMatchObject(ended);
	});

	test("read goes on after an id, as far as its limit, and says when nothing more can come", async () => {
		const { log } = await create();
		await log.openStream(A, "s", [call(1)]);
		const all = await appendAll(log, A, "s", progress("1"), progress("2"), result(1));
		const first = await log.read(A, "s", undefined, 2);
		expect([ids(first.events), first.finished]).toEqual([[all[0], all[1]], false]);
		const second = await log.read(A, "s", at(all, 1), 1);
		expect([ids(second.events), second.finished]).toEqual([[all[2]], true]);
		const third = await log.read(A, "s", at(all, 2), 10);
		expect(third).toEqual({ events: [], evicted: false, finished: true });
	});

	test("read after an id of elsewhere gives nothing, and no clean end", async () => {
		const { log } = await create();
		const all = await finishedStream(log, A, "s", 1);
		const others = await finishedStream(log, A, "t", 2);
		await finishedStream(log, B, "s", 1);
		const nothing = { events: [], evicted: true, finished: false };
		expect(await log.read(A, "s", at(others, 0), 10)).toEqual(nothing);
		expect(await log.read(B, "s", at(all, 0), 10)).toEqual(nothing);
		expect(await log.read(A, "s", "garbage", 10)).toEqual(nothing);
		expect(await log.read(A, "s", at(all, 0).replace(/\d+$/, "9"), 10)).toEqual(nothing);
		expect(await log.read(A, "none", at(all, 0), 10)).toEqual(nothing);
		expect(await log.read(A, "none", undefined, 10)).toEqual({ events: [], evicted: false, finished: false });
	});

	test("a cursor that was written is retained, one that was not is ahead, as is one never issued", async () => {
		const { log } = await create();
		const all = await fill(log, A, "s", 3, false);
		expect(await position(log, A, at(all, 0))).toBe("ahead");
		await log.markWritten(A, at(all, 1));
		const positions = await Promise.all(all.map((id) => position(log, A, id)));
		expect(positions).toEqual(["retained", "retained", "ahead"]);
		for (const n of ["5", "999999", "9007199254740991"]) {
			expect(await position(log, A, at(all, 0).replace(/\d+$/, n))).toBe("ahead");
		}
	});

	test("what is no id of any stream is unknown", async () => {
		const { log } = await create();
		const id = at(await fill(log, A, "s", 3), 0);
		const garbage = [
			"",
			"s",
			"41",
			"s.1",
			".",
			"...",
			"..1",
			id.replace(/\d+$/, "0"),
			id.replace(/\d+$/, "01"),
			id.replace(/\d+$/, "-1"),
			id.replace(/\d+$/, "+1"),
			id.replace(/\d+$/, "1e0"),
			id.replace(/\d+$/, "1.0"),
			id.replace(/\d+$/, "0x1"),
			id.replace(/\d+$/, "9007199254740992"),
			id.replace(/\d+$/, "9".repeat(400)),
			`${id} `,
			` ${id}`,
			`${id}\n`,
			id.replace(/^s/, "nowhere"),
			`${"s".repeat(100_000)}${id}`,
			`${".".repeat(100_000)}`,
			"\ud800.x.1",
			"__proto__.x.1",
		];
		for (const cursor of garbage)
			expect(await log.locate(A, cursor), cursor.slice(0, 40)).toEqual({ position: "unknown" });
	});

	test("a cursor of another session is foreign, also on a stream of the same name", async () => {
		const { log } = await create();
		const mine = await fill(log, A, "_GET_stream", 3);
		const theirs = await fill(log, B, "_GET_stream", 3);
		const own = await fill(log, B, "own", 3);
		expect(await log.locate(A, at(theirs, 0))).toEqual({ position: "foreign" });
		expect(await log.locate(B, at(mine, 0))).toEqual({ position: "foreign" });
		expect(await log.locate(A, at(own, 0))).toEqual({ position: "foreign" });
		await log.drop(B);
		expect(await position(log, A, at(own, 0))).toBe("unknown");
		expect(await position(log, A, at(theirs, 0))).toBe("foreign");
		expect(await position(log, A, at(mine, 0))).toBe("retained");
	});

	test("a cursor of another session marks and acknowledges nothing", async () => {
		const { log } = await create();
		const mine = await fill(log, A, "s", 3, false);
		const theirs = await fill(log, B, "s", 3, false);
		await log.markWritten(B, at(mine, 2));
		await log.acknowledge(B, at(mine, 2));
		expect(await written(log, B, theirs)).toBe(0);
		expect(await written(log, A, mine)).toBe(0);
		expect(await log.unacknowledged(B, at(mine, 2))).toEqual([]);
	});

	test("an id of an earlier epoch is evicted, with every call waiting that this one knows of", async () => {
		const { log: before } = await create();
		const { log } = await create();
		const old = at(await fill(before, A, "s", 9), 8);
		expect(await position(log, A, old)).toBe("unknown");
		await log.openStream(A, "s", [call(1), call(2), call(3)]);
		const all = await appendAll(log, A, "s", result(1));
		await log.closeCall(A, 3);
		await log.markWritten(A, at(all, 0));
		expect(await log.locate(A, old)).toEqual({ position: "evicted", stream: "s", waiting: [1, 2] });
		await log.markWritten(A, old);
		await log.acknowledge(A, old);
		expect(ids(await log.unacknowledged(A, at(all, 0)))).toEqual(all);
	});

	test("two drops in a row resume from the same cursor", async () => {
		const { log } = await create();
		await log.openStream(A, "s", [call(1)]);
		const all = await appendAll(log, A, "s", progress("0"), progress("1", 1), progress("2", 1));
		await log.markWritten(A, at(all, 1));
		const first = await log.locate(A, at(all, 1));
		// The second connection wrote one more, which was lost on the way.
		await log.acknowledge(A, at(all, 1));
		await log.markWritten(A, at(all, 2));
		const last = await log.append(A, "s", result(1));
		const second = await log.locate(A, at(all, 1));
		expect(first.position === "retained" && ids(first.pending)).toEqual([all[2]]);
		expect(second.position === "retained" && ids(second.pending)).toEqual([all[2], last]);
		expect(ids((await log.read(A, "s", at(all, 1), 10)).events)).toEqual([all[2], last]);
	});

	test("a cursor shows the calls that are still open", async () => {
		const { log } = await create();
		await log.openStream(A, "s", [call(1), call("1", FETCH), call(2)]);
		const [first] = await appendAll(log, A, "s", result(1));
		await log.markWritten(A, first ?? "");
		const located = await log.locate(A, first ?? "");
		expect(located.position === "retained" && located.open).toEqual([call("1", FETCH), call(2)]);
	});

	test("written and acknowledged only grow, and acknowledged stays behind written", async () => {
		const { log } = await create();
		const all = await fill(log, A, "s", 5, false);
		await log.acknowledge(A, at(all, 4));
		await log.markWritten(A, at(all, 3));
		expect(ids(await log.unacknowledged(A, at(all, 4)))).toEqual(all.slice(0, 4));
		await log.acknowledge(A, at(all, 1));
		await log.acknowledge(A, at(all, 0));
		await log.markWritten(A, at(all, 0));
		expect(await written(log, A, all)).toBe(4);
		expect(ids(await log.unacknowledged(A, at(all, 3)))).toEqual([all[2], all[3]]);
		expect(ids(await log.unacknowledged(A, at(all, 1)))).toEqual([]);
		await log.acknowledge(A, at(all, 4));
		await log.markWritten(A, at(all, 4));
		expect(ids(await log.unacknowledged(A, at(all, 4)))).toEqual([all[4]]);
	});

	test("acknowledging deletes nothing by itself", async () => {
		const { log } = await create();
		const all = await fill(log, A, "s", 3);
		await log.acknowledge(A, at(all, 2));
		expect(await retained(log, A, "s")).toEqual(all);
		expect(await position(log, A, at(all, 0))).toBe("retained");
	});

	test("ids of no session, stream or event are marked and acknowledged without effect", async () => {
		const { log } = await create();
		const all = await fill(log, A, "s", 2, false);
		for (const id of ["garbage", at(all, 0).replace(/\d+$/, "4"), at(all, 0).replace(/^s/, "t")]) {
			await log.markWritten(A, id);
			await log.acknowledge(A, id);
			await log.markWritten("never", id);
			await log.acknowledge("never", id);
			expect(await log.unacknowledged("never", id)).toEqual([]);
		}
		expect(await written(log, A, all)).toBe(0);
	});

	test("request ids are compared with their type", async () => {
		const { log } = await create();
		expect(await log.openStream(A, "s", [call(1), call("1", FETCH)])).toBe("opened");
		expect(await log.openCall(A, 1)).toEqual({ ...call(1), stream: "s" });
		expect(await log.openCall(A, "1")).toEqual({ ...call("1", FETCH), stream: "s" });
		await log.markWritten(A, await log.append(A, "s", result("1")));
		expect(await log.openCall(A, "1")).toBeUndefined();
		expect(await log.openCall(A, 1)).toBeDefined();
	});

	test("the id of a call whose response waits is in use until it has been sent, or is gone", async () => {
		const { log } = await create({ eventsPerPrincipal: 4 });
		await log.openStream(A, "s", [call(1, FETCH)]);
		const waiting = await log.append(A, "s", result(1));
		expect(await log.openCall(A, 1)).toEqual({ ...call(1, FETCH), stream: "s" });
		expect(await log.openStream(A, "t", [call(1)])).toBe("in_use");
		await log.closeCall(A, 1);
		expect(await log.openCall(A, 1)).toBeDefined();
		await log.markWritten(A, waiting);
		expect(await log.openStream(A, "t", [call(1)])).toBe("opened");

		await log.append(A, "t", result(1));
		expect(await log.openStream(A, "u", [call(1)])).toBe("in_use");
		await fill(log, A, "other", 6);
		expect(await log.openStream(A, "u", [call(1)])).toBe("opened");
	});

	test("a call whose id is open in the session is not opened, nor anything with it", async () => {
		const { log } = await create();
		await log.openStream(A, "s", [call(1)]);
		expect(await log.openStream(A, "t", [call(2), call(1)])).toBe("in_use");
		expect(await log.openStream(A, "s", [call(1)])).toBe("in_use");
		expect(await log.openStream(A, "t", [call(3), call(3)])).toBe("in_use");
		expect(await log.openCall(A, 2)).toBeUndefined();
		expect(await log.openCall(A, 3)).toBeUndefined();
		expect(await log.openStream(B, "t", [call(1)])).toBe("opened");
		await log.markWritten(A, await log.append(A, "s", result(1)));
		expect(await log.openStream(A, "t", [call(2), call(1)])).toBe("opened");
	});

	test("a stream is finished when each of its calls has its response or was cancelled", async () => {
		const { log } = await create();
		const finished = async () => (await log.read(A, "s", undefined, 100)).finished;
		await log.openStream(A, "s", []);
		expect(await finished()).toBe(false);
		await log.openStream(A, "s", [call(1), call(2)]);
		await log.append(A, "s", progress("working", 1));
		await log.append(A, "s", result(1));
		expect(await finished()).toBe(false);
		await log.closeCall(A, 2);
		expect(await finished()).toBe(true);
		await log.openStream(A, "s", [call(3)]);
		expect(await finished()).toBe(false);
	});

	test("a response on another stream than its call's ends the call", async () => {
		const { log } = await create({ events: 2 });
		await log.openStream(A, "s", [call(1)]);
		const [first] = await fill(log, A, "s", 2);
		await fill(log, A, "t", 2);
		await log.append(A, "t", result(1));
		expect(await log.locate(A, first ?? "")).toEqual({ position: "evicted", stream: "s", waiting: [] });
		expect(await log.openCall(A, 1)).toBeUndefined();
		expect((await log.read(A, "s", undefined, 10)).finished).toBe(true);
		expect((await log.read(A, "t", undefined, 10)).finished).toBe(false);
	});

	test("a response to no call, and the end of none, change nothing", async () => {
		const { log } = await create();
		await log.openStream(A, "s", [call(1)]);
		await log.append(A, "s", result(2));
		await log.append(A, "s", { message: '{"method":"x"}', label: SEARCH, terminal: true });
		await log.closeCall(A, "1");
		await log.closeCall("never", 1);
		expect(await log.openCall(A, 1)).toBeDefined();
		expect(await log.openCall("never", 1)).toBeUndefined();
	});

	test("references are kept when their event is gone, until they are forgotten", async () => {
		const { log } = await create({ eventsPerPrincipal: 1 });
		await log.append(A, "s", { ...progress("ask"), label: FETCH, references: ["request:0", "__proto__"] });
		await fill(log, A, "s", 2);
		expect(await log.reference(A, "request:0")).toEqual(FETCH);
		expect(await log.reference(A, "__proto__")).toEqual(FETCH);
		expect(await log.reference(A, "constructor")).toBeUndefined();
		expect(await log.reference(B, "request:0")).toBeUndefined();
		expect(await log.reference("never", "request:0")).toBeUndefined();
		await log.forget(B, "request:0");
		await log.forget("never", "request:0");
		expect(await log.reference(A, "request:0")).toEqual(FETCH);
		await log.forget(A, "request:0");
		expect(await log.reference(A, "request:0")).toBeUndefined();
	});

	test("a session has so many references; the oldest are forgotten first", async () => {
		const { log } = await create({ referencesPerSession: 2 });
		const refer = (of: Label, ...references: string[]) =>
			log.append(A, "s", { ...progress("ask"), label: of, references });
		await refer(SEARCH, "a", "b");
		await log.reference(A, "a");
		await refer(FETCH, "a");
		await refer(SEARCH, "c");
		expect(await log.reference(A, "a")).toEqual(FETCH);
		expect(await log.reference(A, "b")).toBeUndefined();
		expect(await log.reference(A, "c")).toEqual(SEARCH);
	});

	test("a session that was dropped has nothing, takes nothing, and stays dropped", async () => {
		const { log } = await create();
		await log.openStream(A, "s", [call(1)]);
		const id = await log.append(A, "s", { ...progress("x"), references: ["r"] });
		await log.markWritten(A, id);
		await log.hold(A, "s", "h");
		await log.drop(A);
		await log.open(A, "alice");
		await expect(log.append(A, "s", progress("y"))).rejects.toMatchObject(ended);
		await expect(log.openStream(A, "s", [call(2)])).rejects.toMatchObject(ended);
		expect(await log.locate(A, id)).toEqual({ position: "unknown" });
		expect(await log.read(A, "s", undefined, 10)).toEqual({ events: [], evicted: true, finished: false });
		expect(await log.quota(A)).toBe("exceeded");
		expect(await log.openCall(A, 1)).toBeUndefined();
		expect(await log.reference(A, "r")).toBeUndefined();
		await log.hold(A, "s", "h");
		await log.release(A, "s", "h");
		expect(await log.holder(A, "s")).toBeUndefined();
		await log.drop(A);
		expect(await log.append(A2, "s", progress("z"))).toBeDefined();
	});

	test("a session that ends before the log has heard of it stays dropped; one never opened takes nothing", async () => {
		const { log } = await create();
		await log.drop("late");
		await log.open("late", "alice");
		await expect(log.append("late", "s", progress("x"))).rejects.toMatchObject(ended);
		await expect(log.append("never", "s", progress("x"))).rejects.toMatchObject(ended);
	});

	test("opening a session twice keeps what it has", async () => {
		const { log } = await create();
		const all = await fill(log, A, "s", 1);
		await log.open(A, "alice");
		expect(await retained(log, A, "s")).toEqual(all);
	});

	test("acknowledged events go first, the oldest of them first, whatever stream they are on", async () => {
		const { log } = await create({ events: 7 });
		await finishedStream(log, B, "finished", 1);
		const s = await fill(log, A, "s", 2);
		const t = await fill(log, B, "t", 2);
		await fill(log, A, "u", 1);
		await log.acknowledge(B, at(t, 1));
		await log.acknowledge(A, at(s, 0));
		const u = [await log.append(A, "u", progress("new"))];
		expect(await retained(log, A, "s")).toEqual([s[1]]);
		expect(await retained(log, B, "t")).toEqual(t);
		u.push(await log.append(A, "u", progress("new")));
		expect(await retained(log, B, "t")).toEqual([t[1]]);
		u.push(await log.append(A, "u", progress("new")));
		expect(await retained(log, B, "t")).toEqual([]);
		expect(await retained(log, B, "finished")).toHaveLength(2);
		expect(await position(log, B, at(t, 1))).toBe("retained");
		expect(await position(log, B, at(t, 0))).toBe("evicted");
		expect((await retained(log, A, "u")).slice(1)).toEqual(u);
	});

	test("then finished and written streams go, whole, the oldest first", async () => {
		const { log } = await create({ events: 7 });
		const open = await fill(log, B, "open", 1);
		await log.openStream(A, "unwritten", [call(9)]);
		const unwritten = await appendAll(log, A, "unwritten", result(9));
		const first = await finishedStream(log, B, "first", 1);
		const second = await finishedStream(log, A, "second", 2);
		await log.append(A, "s", progress("1"));
		await log.append(A, "s", progress("2"));
		expect(await retained(log, B, "first")).toEqual([]);
		expect(await retained(log, A, "second")).toEqual(second);
		expect(await log.locate(B, at(first, 0))).toEqual({ position: "evicted", stream: "first", waiting: [1] });
		expect(await log.locate(B, at(first, 1))).toEqual({
			position: "retained",
			stream: "first",
			pending: [],
			open: [],
		});
		await fill(log, A, "s", 2);
		expect(await retained(log, A, "second")).toEqual([]);
		expect(await retained(log, A, "unwritten")).toEqual(unwritten);
		expect(await retained(log, B, "open")).toEqual(open);
	});

	test("then the principal that appends loses its own oldest events, never another's", async () => {
		const { log } = await create({ events: 6 });
		const theirs = await fill(log, B, "s", 2, false);
		const s = await fill(log, A, "s", 2);
		const t = await fill(log, A2, "t", 2);
		const more = await fill(log, A, "u", 3);
		expect(await retained(log, B, "s")).toEqual(theirs);
		expect(await retained(log, A, "s")).toEqual([]);
		expect(await retained(log, A2, "t")).toEqual([t[1]]);
		expect(await retained(log, A, "u")).toEqual(more);
		expect(await position(log, A, at(s, 0))).toBe("evicted");
		expect(await position(log, A, at(s, 1))).toBe("retained");
		await fill(log, A, "u", 40);
		expect(await retained(log, B, "s")).toEqual(theirs);
		expect(await retained(log, A, "u")).toHaveLength(4);
	});

	test("in a log full of others' events a new one is gone at once, and known to be", async () => {
		const { log } = await create({ events: 2 });
		const theirs = await fill(log, B, "s", 2, false);
		await log.openStream(A, "s", [call(1)]);
		const all = await appendAll(log, A, "s", progress("0"), result(1));
		await log.markWritten(A, at(all, 0));
		expect(await retained(log, B, "s")).toEqual(theirs);
		expect(await log.read(A, "s", at(all, 0), 10)).toEqual({ events: [], evicted: true, finished: true });
		expect(await log.locate(A, at(all, 0))).toEqual({ position: "evicted", stream: "s", waiting: [1] });
	});

	test("a principal over its own limit loses only its own events, acknowledged and finished ones first", async () => {
		const { log } = await create({ eventsPerPrincipal: 5 });
		const theirs = await fill(log, B, "s", 5);
		await log.acknowledge(B, at(theirs, 4));
		const open = await fill(log, A, "open", 1);
		const finished = await finishedStream(log, A, "finished", 1);
		const s = await fill(log, A2, "s", 2);
		await log.acknowledge(A2, at(s, 0));
		await log.append(A, "open", progress("new"));
		expect(await retained(log, A2, "s")).toEqual([s[1]]);
		await log.append(A, "open", progress("new"));
		expect(await retained(log, A, "finished")).toEqual([]);
		expect(await position(log, A, at(finished, 0))).toBe("evicted");
		await log.append(A, "open", progress("new"));
		expect((await retained(log, A, "open"))[0]).toBe(open[0]);
		await log.append(A, "open", progress("new"));
		expect(await retained(log, A, "open")).not.toContain(open[0]);
		expect(await retained(log, B, "s")).toEqual(theirs);
	});

	test("an evicted cursor names the calls whose response the client cannot have", async () => {
		const { log } = await create({ eventsPerPrincipal: 3 });
		await log.openStream(A, "s", [call(1), call(2), call("2"), call(3)]);
		const all = await appendAll(log, A, "s", result(1), progress("x"), result(2), progress("y"));
		await log.closeCall(A, 3);
		await fill(log, A, "t", 3);
		await log.markWritten(A, at(all, 3));
		const waiting = async (cursor: string) => {
			const located = await log.locate(A, cursor);
			return located.position === "evicted" ? located.waiting : located.position;
		};
		expect(await waiting(at(all, 0))).toEqual([2, "2"]);
		expect(await waiting(at(all, 2))).toEqual(["2"]);
		expect(await waiting(at(all, 3))).toBe("retained");
	});

	test("read says when events before the first one are gone, acknowledged or not", async () => {
		const { log } = await create({ eventsPerPrincipal: 3 });
		const all = await fill(log, A, "s", 3);
		await log.acknowledge(A, at(all, 0));
		all.push(await log.append(A, "s", progress("new")));
		expect(await log.read(A, "s", undefined, 10)).toMatchObject({ evicted: true });
		expect(await log.read(A, "s", at(all, 0), 10)).toMatchObject({ evicted: false });
		all.push(await log.append(A, "s", progress("new")));
		const { events, evicted } = await log.read(A, "s", at(all, 0), 10);
		expect([ids(events), evicted]).toEqual([all.slice(2), true]);
	});

	test("events grow old and go by themselves, acknowledged or not", async () => {
		const { log, advance } = await create({ age: 4 });
		await log.openStream(A, "s", [call(1)]);
		const s = await appendAll(log, A, "s", progress("x", 1), result(1));
		await log.markWritten(A, at(s, 0));
		await advance(2);
		const t = await fill(log, A, "t", 1);
		await advance(3);
		expect(await log.locate(A, at(s, 0))).toEqual({ position: "evicted", stream: "s", waiting: [1] });
		expect(await retained(log, A, "t")).toEqual(t);
		await advance(2);
		expect(await retained(log, A, "t")).toEqual([]);
		const again = await fill(log, A, "t", 1);
		await advance(5);
		expect(await retained(log, A, "t")).toEqual([]);
		expect(await position(log, A, at(again, 0))).toBe("retained");
		expect(await position(log, A, at(t, 0))).toBe("evicted");
	});

	test("an event that is larger than the log may hold is refused, and leaves its call open", async () => {
		const { log } = await create({ bytes: 10_000, bytesPerPrincipal: 4_000 });
		await log.openStream(A, "s", [call(1)]);
		const before = await fill(log, A, "s", 1);
		const large = { code: "event_too_large", name: "ResumeGuardError" };
		await expect(log.append(A, "s", result(1, "x".repeat(4_000)))).rejects.toMatchObject(large);
		await expect(log.append(A, "s", result(1, "漢".repeat(1_400)))).rejects.toMatchObject(large);
		expect(await retained(log, A, "s")).toEqual(before);
		expect(await log.openCall(A, 1)).toBeDefined();
		const next = await log.append(A, "s", result(1, "x".repeat(2_000)));
		expect(await retained(log, A, "s")).toEqual([...before, next]);
	});

	test("bytes are limited for each principal and in all", async () => {
		const { log } = await create({ bytes: 20_000, bytesPerPrincipal: 8_000 });
		const big = progress("x".repeat(3_000));
		const theirs = await appendAll(log, B, "s", big, big);
		const mine = await appendAll(log, A, "s", big, big, big);
		expect(await retained(log, B, "s")).toEqual(theirs);
		expect(await retained(log, A, "s")).toEqual(mine.slice(1));
	});

	test("open calls count against the quota of the principal, in all its sessions", async () => {
		const { log } = await create({ openCallsPerPrincipal: 2 });
		await log.openStream(A, "s", [call(1)]);
		expect(await log.quota(A)).toBe("left");
		await log.openStream(A2, "s", [call(1)]);
		expect([await log.quota(A), await log.quota(A2), await log.quota(B)]).toEqual([
			"exceeded",
			"exceeded",
			"left",
		]);
		await log.closeCall(A, 1);
		expect(await log.quota(A2)).toBe("left");
		await log.openStream(A, "s", [call(2)]);
		await log.append(A2, "s", result(1));
		expect(await log.quota(A)).toBe("left");
		await log.openStream(A, "s", [call(3)]);
		await log.drop(A);
		expect(await log.quota(A2)).toBe("left");
	});

	test("streams count against the quota until they are finished and written, or empty", async () => {
		const { log } = await create({ streamsPerPrincipal: 2 });
		await log.append(A, "_GET_stream", progress("x"));
		await finishedStream(log, A, "s", 1);
		expect(await log.quota(A)).toBe("left");
		await log.openStream(A, "t", [call(2)]);
		const id = await log.append(A, "t", result(2));
		expect([await log.quota(A), await log.quota(B)]).toEqual(["exceeded", "left"]);
		await log.markWritten(A, id);
		expect(await log.quota(A)).toBe("left");
		await log.openStream(A, "u", [call(3)]);
		await log.closeCall(A, 3);
		expect(await log.quota(A)).toBe("left");
	});

	test("events that wait to be written count against the quota, by number", async () => {
		const { log } = await create({ eventsPerPrincipal: 8 });
		const s = await fill(log, A, "s", 5, false);
		expect(await log.quota(A)).toBe("left");
		const t = await fill(log, A2, "t", 1, false);
		expect([await log.quota(A), await log.quota(B)]).toEqual(["exceeded", "left"]);
		expect(await retained(log, A, "s")).toEqual(s);
		await log.markWritten(A2, at(t, 0));
		expect(await log.quota(A)).toBe("left");
	});

	test("events that wait to be written count against the quota, by bytes", async () => {
		const { log } = await create({ bytesPerPrincipal: 16_000 });
		const big = progress("x".repeat(4_000));
		await appendAll(log, A, "s", big, big);
		expect(await log.quota(A)).toBe("left");
		const id = await log.append(A, "s", big);
		expect([await log.quota(A), await log.quota(B)]).toEqual(["exceeded", "left"]);
		await log.markWritten(A, id);
		expect(await log.quota(A)).toBe("left");
	});

	test("when what no client was sent has to go, what comes after it on its stream goes, and counts no more", async () => {
		const { log } = await create({ eventsPerPrincipal: 8 });
		await log.openStream(A, "s", [call(1)]);
		const all = await fill(log, A, "s", 8, false);
		await log.markWritten(A, at(all, 0));
		expect(await log.quota(A)).toBe("exceeded");
		await fill(log, A, "t", 2, false);
		expect(await log.quota(A)).toBe("left");
		expect(await log.read(A, "s", at(all, 0), 9)).toMatchObject({ events: [], evicted: true });
		await fill(log, A, "s", 8, false);
		expect(await log.quota(A)).toBe("left");
		expect(await log.locate(A, at(all, 0))).toEqual({ position: "evicted", stream: "s", waiting: [1] });
		await log.append(A, "s", result(1));
		expect(await log.locate(A, at(all, 0))).toEqual({ position: "evicted", stream: "s", waiting: [1] });
	});

	test("events that are gone wait no longer", async () => {
		const { log } = await create({ eventsPerPrincipal: 4 });
		const all = await fill(log, A, "s", 7, false);
		expect(await log.quota(A)).toBe("exceeded");
		await log.markWritten(A, at(all, 4));
		expect(await log.quota(A)).toBe("left");
		await log.markWritten(A, at(all, 6));
		await fill(log, A, "s", 2, false);
		expect(await log.quota(A)).toBe("left");
	});

	const full: Partial<EventLogLimits>[] = [{ events: 8 }, { bytes: 12_000 }];
	test.each(full)(
		"a log full of what waits to be written has no quota left for anyone: %j",
		async (limits) => {
			const { log } = await create(limits);
			const big = progress("x".repeat(1_300));
			const all = await appendAll(log, A, "s", big, big, big, big, big, big);
			expect([await log.quota(A), await log.quota(B)]).toEqual(["exceeded", "exceeded"]);
			await log.markWritten(A, at(all, 0));
			expect(await log.quota(B)).toBe("left");
		},
	);

	test("a log full of unfinished streams has no quota left for anyone", async () => {
		const { log } = await create({ streams: 2 });
		await log.openStream(A, "s", [call(1)]);
		expect(await log.quota(B)).toBe("left");
		await log.openStream(A, "t", [call(2)]);
		expect(await log.quota(B)).toBe("exceeded");
		await log.closeCall(A, 1);
		expect(await log.quota(B)).toBe("left");
	});

	test("a client that stays connected keeps its quota, however much it has been sent", async () => {
		const { log } = await create({ eventsPerPrincipal: 4, streamsPerPrincipal: 3 });
		for (let n = 0; n < 20; n += 1) {
			await fill(log, A, "_GET_stream", 1);
			await finishedStream(log, A, `s${n}`, n);
			expect(await log.quota(A)).toBe("left");
		}
	});

	test("over the limit on streams the oldest finished ones are forgotten, which their cursors say", async () => {
		const { log } = await create({ streamsPerPrincipal: 3 });
		await log.openStream(A, "open", [call(99)]);
		const all: string[][] = [];
		for (let n = 0; n < 4; n += 1) all.push(await finishedStream(log, A, `s${n}`, n));
		const positions = await Promise.all(all.map((pair) => position(log, A, at(pair, 1))));
		expect(positions).toEqual(["evicted", "evicted", "retained", "retained"]);
		expect(await log.locate(A, at(at(all, 0), 1))).toEqual({
			position: "evicted",
			stream: "s0",
			waiting: [],
		});
		expect(await log.openCall(A, 99)).toBeDefined();
		expect(await position(log, A, at(at(all, 0), 1).replace(/\d+$/, "9"))).toBe("unknown");
	});

	test("of the finished streams those without events are forgotten first", async () => {
		const { log } = await create({ streams: 2 });
		const older = await finishedStream(log, A, "older", 1);
		await log.openStream(A, "cancelled", [call(2)]);
		await log.closeCall(A, 2);
		await log.openStream(A, "new", [call(3)]);
		expect(await retained(log, A, "older")).toEqual(older);
	});

	test("a forgotten stream that is appended to again gives no id twice", async () => {
		const { log } = await create({ streams: 2 });
		const all = await finishedStream(log, A, "s", 1);
		await finishedStream(log, A, "t", 2);
		await finishedStream(log, A, "u", 3);
		const late = await fill(log, A, "s", 1, false);
		expect(await written(log, A, late)).toBe(0);
		await log.markWritten(A, at(late, 0));
		expect(all).not.toContain(late[0]);
		expect(await position(log, A, at(late, 0))).toBe("retained");
		expect(await position(log, A, at(all, 1))).toBe("evicted");
		expect(await log.read(A, "s", at(all, 1), 10)).toMatchObject({ evicted: true });
		expect(await log.read(A, "s", undefined, 10)).toMatchObject({ evicted: false });
	});

	test("one connection holds a stream; the next takes it over; only the holder lets go", async () => {
		const { log } = await create();
		expect(await log.holder(A, "s")).toBeUndefined();
		await log.hold(A, "s", "first");
		expect(await log.holder(A, "s")).toBe("first");
		await log.hold(A, "s", "second");
		await log.release(A, "s", "first");
		expect(await log.holder(A, "s")).toBe("second");
		expect(await log.holder(B, "s")).toBeUndefined();
		await log.release(A, "s", "second");
		expect(await log.holder(A, "s")).toBeUndefined();
		await log.release(A, "none", "second");
	});

	test("only who holds a stream marks its events as written, where it says who it is", async () => {
		const { log } = await create();
		const all = await fill(log, A, "s", 3, false);
		await log.hold(A, "s", "first");
		expect(await log.markWritten(A, at(all, 0), "first")).toBe(true);
		await log.hold(A, "s", "second");
		expect(await log.markWritten(A, at(all, 1), "first")).toBe(false);
		expect(await written(log, A, all)).toBe(1);
		expect(await log.markWritten(A, at(all, 1), "second")).toBe(true);
		await log.release(A, "s", "second");
		expect(await log.markWritten(A, at(all, 2), "second")).toBe(false);
		expect(await log.markWritten(A, at(all, 2))).toBe(true);
		expect(await written(log, A, all)).toBe(3);
	});

	test("what was not issued in the session is not marked", async () => {
		const { log } = await create();
		const [id = ""] = await fill(log, A, "s", 1, false);
		await log.hold(A, "s", "h");
		const others = [`${id}0`, "s.x.1", "", id.replace(/^s/, "t")];
		for (const other of others) expect(await log.markWritten(A, other, "h")).toBe(false);
		expect(await log.markWritten(B, id, "h")).toBe(false);
		await log.drop(A);
		expect(await log.markWritten(A, id, "h")).toBe(false);
	});

	test("watchers hear of appends, calls that end, new holders and the end of the session", async () => {
		const { log } = await create();
		const seen: string[] = [];
		const next = (what: string) =>
			new Promise<void>((resolve) => {
				const stop = log.watch(A, "s", () => {
					seen.push(what);
					stop();
					resolve();
				});
			});
		await log.openStream(A, "s", [call(1)]);
		const steps: [string, () => Promise<unknown>][] = [
			["append", () => log.append(A, "s", progress("x"))],
			["end of a call", () => log.closeCall(A, 1)],
			["holder", () => log.hold(A, "s", "h")],
			["end of the session", () => log.drop(A)],
		];
		for (const [what, step] of steps) {
			const heard = next(what);
			await step();
			await heard;
		}
		expect(seen).toEqual(steps.map(([what]) => what));
	});

	test("watchers hear after it has happened, and only of their stream and session", async () => {
		const { log } = await create();
		const looked: Promise<string[]>[] = [];
		let others = 0;
		log.watch(A, "t", () => others++);
		log.watch(B, "s", () => others++);
		const heard = new Promise<void>((resolve) => {
			log.watch(A, "s", () => {
				looked.push(retained(log, A, "s"));
				resolve();
			});
		});
		const id = await log.append(A, "s", progress("x"));
		await heard;
		expect(await looked[0]).toEqual([id]);
		expect(others).toBe(0);
	});

	test("watchers may leave while they are told, throw, and append", async () => {
		const { log } = await create();
		const calls: string[] = [];
		const warning = warned("watcher failed");
		const stopFirst = log.watch(A, "s", () => {
			calls.push("first");
			stopFirst();
			stopThird();
		});
		log.watch(A, "s", () => {
			throw new Error("watcher failed");
		});
		const stopThird = log.watch(A, "s", () => calls.push("third"));
		const done = new Promise<void>((resolve) => {
			const stop = log.watch(A, "s", () => {
				stop();
				calls.push("last");
				resolve(log.append(A, "s", progress("from a watcher")).then(() => {}));
			});
		});
		await log.append(A, "s", progress("x"));
		await done;
		expect(calls).toEqual(["first", "last"]);
		await warning;
		expect(await retained(log, A, "s")).toHaveLength(2);
	});

	test("in a session that is gone there is nothing to watch", async () => {
		const { log } = await create();
		const stop = log.watch("never", "s", () => expect.unreachable());
		stop();
	});
}
