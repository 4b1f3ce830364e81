import { setTimeout as sleep } from "node:timers/promises";
import type { EventLogLimits, MemoryEventLog, PolicyData } from "mcp-resume-guard";
import { expect, vi } from "vitest";
import { createRecorder, type Exchange, framesOf, type Recorder } from "../../examples/demo/recorder.ts";
import { sessionKey } from "../../src/sessions/key.ts";
import { createAnsweredLog } from "./answered.ts";
import type { RunningCall } from "./calls.ts";
import { connectClient, type Ending, type TestClient } from "./clients.ts";
import { type Host, startHost } from "./host.ts";
import type { Sdk, TransportKind } from "./servers.ts";
import { mint } from "./tokens.ts";
import { startWire, type Wire } from "./wire.ts";

export interface Pair {
	readonly server: Sdk;
	readonly client: Sdk;
}

export type Replay = "atomic" | "prefix";
export type TokenName = "wide" | "narrow" | "expired" | "stranger";

export interface CellOptions extends Pair {
	readonly replay: Replay;
	readonly transport: TransportKind;
	readonly data?: Partial<PolicyData>;
	readonly limits?: Partial<EventLogLimits>;
	/** The client (of v2) gets itself a wide token when it is told that its own is not valid any more. */
	readonly refreshes?: boolean;
}

/** A call as both ends see it. */
export interface Started {
	/** In the server. */
	readonly running: RunningCall;
	/** In the client. */
	readonly ending: Promise<Ending>;
}

/** A host, a client that is connected to it, and the line between them. */
export interface Cell {
	readonly client: TestClient;
	readonly clientSdk: Sdk;
	readonly replay: Replay;
	readonly events: MemoryEventLog;
	readonly recorder: Recorder;
	readonly wire: Wire;
	/** Requests of the client's go out with that token from now on. */
	use(token: TokenName): void;
	/** Makes calls `[tool, name]` in one POST; resolves when they run and the client has its first cursor. */
	start(...calls: readonly (readonly [tool: string, name: string])[]): Promise<Started[]>;
	/** Resolves when the client has got the event of that number on the calls' stream. */
	received(n: number): Promise<void>;
	/** Breaks the connection that the calls' stream is on. Requests wait until the line is up again. */
	drop(): Promise<void>;
	/** The line is up again, and requests go out with that token. */
	comeBack(token: TokenName): void;
	/** What the application does when the client's GET has been refused with 403, before the client tries again. */
	onRefusal: () => void;
	/** Resolves when the first `count` GETs with a cursor of the calls' stream have been answered to the end. */
	resumes(count: number): Promise<void>;
	/** What came over the calls' stream, a line for each request: who asked, and what came. */
	transcript(): string[];
	/** The id of the event of that number on the calls' stream. */
	id(n: number): string;
	/** Whether the call's result is not in the event log yet. */
	isOpen(call: RunningCall): Promise<boolean>;
	/** Messages that the client was given, in words. */
	given(): string[];
	/** That the client gives up, and the call is still pending: nothing will tell its caller. */
	expectHang(ending: Promise<Ending>): Promise<void>;
	/** That the call is still pending after a time in which it could have settled. */
	expectPending(ending: Promise<Ending>): Promise<void>;
	close(): Promise<void>;
}

/** Time in which a call that can settle has settled. */
const SETTLED = 250;

export async function openCell(options: CellOptions): Promise<Cell> {
	const tokens: Record<TokenName, string> = {
		wide: await mint("wide"),
		narrow: await mint("narrow"),
		expired: await mint("wide", { expiresIn: -1 }),
		stranger: await mint("wide", { sub: "bob" }),
	};
	const events = createAnsweredLog(options.limits);
	const host: Host = await startHost({
		server: options.server,
		// One of each, behind both servers.
		kind: options.server === options.client ? "fastify" : "node",
		transport: options.transport,
		data: { replay: options.replay, ...options.data },
		events,
	});
	const wire = await startWire(host.port);
	const recorder = createRecorder(tokens.wide, {
		onAnswer: ({ method, status }) => method === "GET" && status === 403 && cell.onRefusal(),
	});
	const client = await connectClient(
		options.client,
		new URL(`http://127.0.0.1:${wire.port}/mcp`),
		recorder,
		options.refreshes === true ? () => cell.use("wide") : undefined,
	);
	// The session's own stream; from here on all requests are about calls.
	await recorder.until(() => recorder.exchanges.some(({ method, text }) => method === "GET" && text !== ""));
	const since = recorder.exchanges.length;

	let stream = "";
	const calls: RunningCall[] = [];
	const nameOf = (id: unknown) => calls.find((call) => call.id === id)?.name ?? `request ${id}`;
	const numberOf = (id: string) => (stream !== "" && id.startsWith(stream) ? id.slice(stream.length) : id);
	const isOnStream = ({ method, lastEventId }: Exchange) =>
		method === "POST" || lastEventId?.startsWith(stream) === true;

	function words(message: object): string {
		const { result, error, id, params } = message as {
			id?: unknown;
			result?: { content: readonly { text: string }[] };
			error?: { code: number };
			params?: { message?: string };
		};
		if (error !== undefined) return `error ${error.code} of ${nameOf(id)}`;
		return result?.content[0]?.text ?? params?.message ?? JSON.stringify(message);
	}

	function frames(text: string): string[] {
		return framesOf(text).map(({ event, id, data }) => {
			const what = data === "" ? "" : event === "error" ? "refusal" : words(JSON.parse(data));
			return [id === undefined ? "" : numberOf(id), what].join(" ").trim();
		});
	}

	function line({ method, lastEventId, token, status, text, end }: Exchange): string {
		const who = Object.entries(tokens).find(([, value]) => value === token)?.[0] ?? "?";
		const asked = lastEventId === undefined ? method : `${method} after ${numberOf(lastEventId)}`;
		const came = status === 200 ? `: ${frames(text).join(", ")}; ${end}` : "";
		return `${asked}, ${who}, ${status}${came}`;
	}

	const gets = () => recorder.exchanges.slice(since).filter((one) => one.method === "GET" && isOnStream(one));

	const cell: Cell = {
		onRefusal: () => undefined,
		client,
		clientSdk: options.client,
		replay: options.replay,
		events,
		recorder,
		wire,
		use(name) {
			recorder.token = tokens[name];
		},
		async start(...named) {
			const before = client.cursor;
			if (named.length > 1) client.sendTogether(named.length);
			const endings = named.map(([tool, name]) => client.call(tool, name));
			const running = await Promise.all(named.map(([, name]) => host.calls.running(name)));
			calls.push(...running);
			await vi.waitFor(() => expect(client.cursor).not.toBe(before));
			// The first event has the number 1.
			stream = client.cursor.slice(0, -1);
			return running.map((one, index) => ({
				running: one,
				ending: endings[index] ?? Promise.reject(new Error("not called")),
			}));
		},
		received: (n) =>
			vi.waitFor(() => expect(client.cursor).toBe(cell.id(n)), { timeout: 5_000, interval: 5 }),
		async drop() {
			recorder.line = "down";
			await wire.cut(stream);
		},
		comeBack(name) {
			cell.use(name);
			recorder.line = "up";
		},
		async resumes(count) {
			const first = () => gets().slice(0, count);
			await recorder.until(() => first().length === count && first().every(({ end }) => end !== "open"));
		},
		transcript: () => recorder.exchanges.slice(since).filter(isOnStream).map(line),
		id: (n) => `${stream}${n}`,
		isOpen: ({ id }) => events.isOpen(sessionKey(client.session), id),
		given: () => client.messages.map(words),
		async expectHang(ending) {
			const gaveUp = expect.stringContaining("Maximum reconnection attempts");
			await vi.waitFor(() => expect(client.errors).toContainEqual(gaveUp), { timeout: 10_000 });
			await cell.expectPending(ending);
		},
		async expectPending(ending) {
			const first = await Promise.race([ending, sleep(SETTLED).then(() => "pending")]);
			expect(first).toBe("pending");
		},
		async close() {
			recorder.line = "up";
			await client.close();
			await wire.close();
			await host.close();
		},
	};
	return cell;
}
