import { expect, test } from "vitest";
import { call, openSession, told } from "../support/client.ts";
import { run, type StartHost, token } from "../support/host.ts";
import { createObservedLog } from "../support/log.ts";

/** Reports four pages, and waits after the second until the test opens the gate `turn`. */
const search = call(7, "search", { query: "owls", pages: 4, gate: "turn", gate_after: 2 });
const pages = [
	"#2 of 7: page 1",
	"#3 of 7: page 2",
	"#4 of 7: page 3",
	"#5 of 7: page 4",
	"#6 7 = 4 pages about owls",
];

export function resumeTests(start: StartHost): void {
	test("a call's events come in order, and the stream ends", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		host.gates.open(client.session, "turn");

		const posted = await client.post(wide, search);

		expect(await posted.closed).toBe("ended");
		expect(posted.status).toBe(200);
		expect(posted.headers["mcp-session-id"]).toBe(client.session);
		expect(told(posted)).toEqual(["#1 cursor", ...pages]);
	});

	test("a dropped call is resumed after the last event that came, and ends", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, search);
		await posted.count(3);
		await host.drop(client, posted);
		expect(told(posted)).toEqual(["#1 cursor", ...pages.slice(0, 2)]);

		host.gates.open(client.session, "turn");
		const resumed = await client.get(wide, posted.cursor);

		expect(await resumed.closed).toBe("ended");
		expect(resumed.status).toBe(200);
		expect(told(resumed)).toEqual(["#3 cursor", ...pages.slice(2)]);
	});

	test("a result that came while nobody listened is there for who comes back", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, search);
		await posted.count(3);
		await host.drop(client, posted);
		host.gates.open(client.session, "turn");
		await host.log.appended("4 pages about owls");

		const resumed = await client.get(wide, posted.cursor);

		expect(await resumed.closed).toBe("ended");
		expect(told(resumed)).toEqual(["#3 cursor", ...pages.slice(2)]);
	});

	test("a resume that drops before its first event keeps its cursor, as often as it takes", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, search);
		await posted.count(3);
		await host.drop(client, posted);
		let { cursor } = posted;
		for (let drop = 0; drop < 3; drop++) {
			const dropped = await client.get(wide, cursor);
			await dropped.count(1);
			await host.drop(client, dropped);
			expect(told(dropped)).toEqual(["#3 cursor"]);
			cursor = dropped.cursor;
		}

		host.gates.open(client.session, "turn");
		const resumed = await client.get(wide, cursor);

		expect(await resumed.closed).toBe("ended");
		expect(told(resumed)).toEqual(["#3 cursor", ...pages.slice(2)]);
	});

	test("a call that dropped before its first event is resumed from the priming event", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, call(7, "fetch", { id: "owl", gate: "turn" }));
		await posted.count(1);
		await host.drop(client, posted);

		host.gates.open(client.session, "turn");
		const resumed = await client.get(wide, posted.cursor);

		expect(await resumed.closed).toBe("ended");
		expect(told(resumed)).toEqual(["#1 cursor", "#2 7 = the text of document owl"]);
	});

	test("a resume with everything there already says so", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		host.gates.open(client.session, "turn");
		const posted = await client.post(wide, search);
		await posted.closed;

		const resumed = await client.get(wide, posted.cursor);

		expect(await resumed.closed).toBe("ended");
		expect([resumed.status, resumed.bytes.toString().split("\r\n\r\n")[1]]).toEqual([204, ""]);
	});

	test("clients of older revisions get no event without data", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await openSession(host.origin, wide, "2025-06-18");
		const posted = await client.post(wide, search);
		await posted.count(2);
		await host.drop(client, posted);
		host.gates.open(client.session, "turn");

		const resumed = await client.get(wide, posted.cursor);

		expect(await resumed.closed).toBe("ended");
		expect(told(posted)).toEqual(["#2 of 7: page 1", "#3 of 7: page 2"]);
		expect(told(resumed)).toEqual(["#4 of 7: page 3", "#5 of 7: page 4", "#6 7 = 4 pages about owls"]);
	});

	test("a resume takes the stream over from an older connection, which is cut", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, search);
		await posted.count(3);

		const second = await client.get(wide, posted.cursor);
		await second.count(1);
		expect(await posted.closed).toBe("cut");
		const third = await client.get(wide, posted.cursor);
		await third.count(1);
		expect(await second.closed).toBe("cut");
		host.gates.open(client.session, "turn");

		expect(await third.closed).toBe("ended");
		expect(told(posted)).toEqual(["#1 cursor", ...pages.slice(0, 2)]);
		expect(told(second)).toEqual(["#3 cursor"]);
		expect(told(third)).toEqual(["#3 cursor", ...pages.slice(2)]);
	});

	test("a refused resume leaves the older connection alone", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, search);
		await posted.count(3);

		const refused = await client.get(await token({ exp: 1 }), posted.cursor);
		host.gates.open(client.session, "turn");

		expect(refused.status).toBe(401);
		expect(await posted.closed).toBe("ended");
		expect(told(posted)).toEqual(["#1 cursor", ...pages]);
	});

	test("a cursor that is not of this session, or that nobody can have, is refused", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const other = await host.open(wide);
		const posted = await other.post(wide, search);
		await posted.count(3);
		await host.drop(other, posted);
		host.gates.open(other.session, "turn");
		await host.log.appended("4 pages about owls");
		const ahead = posted.cursor?.replace(/\d+$/, "6") ?? "";

		for (const [{ get }, cursor, status, code] of [
			[client, posted.cursor, 400, "cursor_unknown"],
			[client, "nothing", 400, "cursor_unknown"],
			[client, "x".repeat(300), 400, "cursor_unknown"],
			[other, ahead, 400, "cursor_ahead"],
		] as const) {
			const refused = await get(wide, cursor);
			expect({ cursor, status: refused.status }).toEqual({ cursor, status });
			expect(JSON.parse(await refused.text())).toMatchObject({
				error: { data: { code, session: "keep" } },
				id: null,
			});
		}
		expect((await other.get(wide, posted.cursor)).status).toBe(200);
	});

	test("a cursor before events that had to go is told so, for each call that waits", async () => {
		const host = await run(start, { log: createObservedLog({ events: 3 }) });
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, search);
		await posted.count(1);
		const first = posted.events[0]?.id;
		await host.drop(client, posted);
		host.gates.open(client.session, "turn");
		await host.log.appended("4 pages about owls");

		const refused = await client.get(wide, first);

		expect(await refused.closed).toBe("ended");
		expect(refused.status).toBe(200);
		expect(told(refused)).toEqual(["- event: error", "- 7 ! reissue: cursor_evicted"]);
		expect((await client.post(wide, { jsonrpc: "2.0", id: 8, method: "ping" })).status).toBe(200);
	});

	test("the session's own stream is resumed, and there is one of it", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const listening = await client.get(wide);
		await listening.count(1);

		expect((await client.get(wide)).status).toBe(409);
		await (await client.post(wide, call(7, "announce"))).text();
		await listening.count(2);
		await host.drop(client, listening);
		await (await client.post(wide, call(8, "announce"))).text();
		const resumed = await client.get(wide, listening.cursor);
		await resumed.count(2);
		await (await client.post(wide, call(9, "announce"))).text();
		await resumed.count(3);

		const news = "notifications/tools/list_changed";
		expect(told(listening)).toEqual(["#1 cursor", `#2 ${news}`]);
		expect(told(resumed)).toEqual(["#2 cursor", `#3 ${news}`, `#4 ${news}`]);
	});
}
