import { createMemorySessionStore } from "mcp-resume-guard";
import { expect, onTestFinished, test, vi } from "vitest";
import { call, type RawClient } from "../support/client.ts";
import { run, type StartHost, token } from "../support/host.ts";
import type { Exchange } from "../support/http.ts";
import { createObservedLog } from "../support/log.ts";

const OF_SESSIONS = ["open", "find", "end", "repeated"] as const;
const OF_EVENTS = [
	"open",
	"drop",
	"quota",
	"openStream",
	"openCall",
	"closeCall",
	"reference",
	"forget",
	"append",
	"markWritten",
	"acknowledge",
	"unacknowledged",
	"locate",
	"read",
	"start",
	"hold",
	"release",
	"holder",
] as const;

/** The same store, some of whose methods reject while they are named in `failing`. */
function unreliable<T extends object>(store: T, failing: ReadonlySet<PropertyKey>): T {
	return new Proxy(store, {
		get(target, name, receiver) {
			const member: unknown = Reflect.get(target, name, receiver);
			return failing.has(name) ? () => Promise.reject(new Error("the network is down")) : member;
		},
	});
}

type Ask = (client: RawClient, bearer: string, cursor: string) => Promise<Exchange>;

const requests: readonly Ask[] = [
	(client, bearer, cursor) => client.get(bearer, cursor),
	(client, bearer) => client.post(bearer, call(8, "search", { query: "owls", pages: 1 })),
	(client, bearer) => client.post(bearer, { jsonrpc: "2.0", id: 9, method: "tools/list" }),
	(client, bearer) => client.post(bearer, { jsonrpc: "2.0", id: 0, result: {} }),
	(client, bearer) =>
		client.post(bearer, { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } }),
	(client, bearer) => client.delete(bearer),
];

export function storeTests(start: StartHost): void {
	const cases = [
		...OF_SESSIONS.map((name) => ["the session table", name] as const),
		...OF_EVENTS.map((name) => ["the event log", name] as const),
	];
	test.each(cases)("%s fails at %s: nobody gets in, and the host lives on", async (where, name) => {
		const [ofSessions, ofEvents] = [new Set<PropertyKey>(), new Set<PropertyKey>()];
		const sessions = unreliable(createMemorySessionStore(), ofSessions);
		const log = unreliable(createObservedLog(), ofEvents);
		const unhandled = vi.fn();
		process.on("unhandledRejection", unhandled);
		onTestFinished(() => void process.off("unhandledRejection", unhandled));
		const host = await run(start, { sessions, log, data: { foreign_principal: "keep" } });
		const [owner, stranger] = [await token(), await token({ sub: "mallory" })];
		const client = await host.open(owner);
		const posted = await client.post(owner, call(7, "fetch", { id: "owl", gate: "turn" }));
		await posted.count(1);
		const { cursor = "" } = posted;
		await host.drop(client, posted);
		host.gates.open(client.session, "turn");
		await log.appended("the text of document owl");

		const failing = where === "the session table" ? ofSessions : ofEvents;
		failing.add(name);
		for (const [index, ask] of requests.entries()) {
			const strange = await ask(client, stranger, cursor);
			expect(strange.status, `stranger ${index}`).toBeGreaterThanOrEqual(400);
			// The connection may break before there is an answer.
			const own = await ask(client, owner, cursor).then(
				({ closed }) => closed,
				({ message }: Error) => message,
			);
			expect(own, `owner ${index}`).toMatch(/^(?:ended|cut|socket hang up)$/);
		}
		await host.open(owner).catch(() => undefined);

		failing.clear();
		const again = await host.open(owner);
		const answered = await again.post(owner, call(7, "search", { query: "owls", pages: 1 }));
		expect(await answered.text()).toContain("1 pages about owls");
		expect(unhandled).not.toHaveBeenCalled();
	});
}
