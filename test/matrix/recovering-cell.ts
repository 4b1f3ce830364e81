import { setTimeout as sleep } from "node:timers/promises";
import type { MemoryEventLog } from "mcp-resume-guard";
import {
	createRecoveringClient,
	type Fetch,
	RecoveryError,
	type RecoveryEvent,
	type RepeatQuestion,
	type TokenRequest,
} from "mcp-resume-guard/client";
import { expect, vi } from "vitest";
import { createRecorder, type Exchange, framesOf, type Recorder } from "../../examples/demo/recorder.ts";
import { parseEventId } from "../../src/events/id.ts";
import { sessionKey } from "../../src/sessions/key.ts";
import { steps } from "../client/support.ts";
import { createAnsweredLog } from "./answered.ts";
import type { RunningCall } from "./calls.ts";
import type { CellOptions, TokenName } from "./cell.ts";
import { connectClient, type TestClient } from "./clients.ts";
import { startHost } from "./host.ts";
import { mint } from "./tokens.ts";
import { startWire, type Wire } from "./wire.ts";

/** Milliseconds in which every call settles, whatever happens to it. */
export const BOUND = 10_000;
/** The most that leaves time for the call itself. */
const RECOVERY_TIMEOUT = 8_000;

export interface RecoveringCellOptions extends Omit<CellOptions, "refreshes"> {
	/** What the application says of a call that may have run. Default: nothing, which is no. */
	readonly mayRepeat?: boolean;
	/** Milliseconds. Default: the client's own. */
	readonly recoveryTimeout?: number;
}

/** How a call of the application's ended. */
export interface Settled {
	readonly text?: string;
	readonly error?: unknown;
	/** Milliseconds since it was made; {@link BOUND}: it has not settled in time. */
	readonly took: number;
}

export interface Started {
	/** In the server. */
	readonly running: RunningCall;
	/** In the application. */
	readonly settled: Promise<Settled>;
}

/** A host, a recovering client around one of an SDK, the application that has tokens for it, and the line between them. */
export interface RecoveringCell {
	readonly options: RecoveringCellOptions;
	readonly events: MemoryEventLog;
	readonly recorder: Recorder;
	readonly wire: Wire;
	/** The SDK's clients that it has connected. */
	readonly connected: readonly TestClient[];
	/** Which token the application has when it is asked. Until it is set: a wide one to start with, and no other. */
	token: (request: TokenRequest) => TokenName | undefined;
	/** What the application has been asked for: the resources, or the reason. */
	readonly asked: readonly (string | readonly string[])[];
	/** Calls that it has been asked about. */
	readonly questions: readonly RepeatQuestion[];
	/** Makes calls `[tool, name]` in one POST; resolves when they run and the first event has come. */
	start(...calls: readonly (readonly [tool: string, name: string])[]): Promise<Started[]>;
	/** The second run of a call, which the client has made again: it is named `<name>2`. */
	repetition(name: string): Promise<RunningCall>;
	/** Resolves when the event of that number has come on the calls' stream. */
	received(n: number): Promise<void>;
	/** Breaks the connection that the calls' stream is on. Requests wait until the line is up again. */
	drop(): Promise<void>;
	comeBack(): void;
	/** The tokens that the client has had so far expire. */
	expire(): void;
	/** Someone else comes with the id of the client's session, and the cursor after event `n`, past the line. */
	intrude(n: number): Promise<{ readonly status: number; readonly text: string }>;
	/** The id of the event of that number on the stream of the first calls. */
	id(n: number): string;
	/** What came over the `of`th stream of calls, a line for each request: who asked, and what came. */
	transcript(of?: number): string[];
	/** Messages that the SDK's clients were given, in words. */
	given(): string[];
	/** What the application has heard of calls, in words. */
	steps(): string[];
	/** Whether the call's result is not in the event log yet. */
	isOpen(call: RunningCall): Promise<boolean>;
	/** That every call that was made has settled in time, and nothing was given to a client that waits for no such thing. */
	expectSettled(): Promise<void>;
	close(): Promise<void>;
}

export async function openRecoveringCell(options: RecoveringCellOptions): Promise<RecoveringCell> {
	const tokens: Record<TokenName, string> = {
		wide: await mint("wide"),
		narrow: await mint("narrow"),
		expired: await mint("wide", { expiresIn: -1 }),
		stranger: await mint("wide", { sub: "bob" }),
	};
	const events = createAnsweredLog(options.limits);
	const host = await startHost({
		server: options.server,
		// One of each, behind both servers.
		kind: options.server === options.client ? "fastify" : "node",
		transport: options.transport,
		data: { replay: options.replay, ...options.data },
		events,
	});
	const wire = await startWire(host.port);
	const url = new URL(`http://127.0.0.1:${wire.port}/mcp`);

	let sent: () => void = () => undefined;
	let turn = Promise.resolve();
	const recorder = createRecorder(tokens.wide, { onSend: () => sent() });
	/** What stands behind the tokens that the application has given out: that of an expired one is another. */
	const issued = new Map<string, TokenName>();
	const nameOf = (header: string | null) => issued.get(header?.replace(/^Bearer /, "") ?? "");

	// The recorder has one token for all requests: each waits until the one before it has gone out with its own.
	const send: Fetch = async (input, init) => {
		const authorization = new Headers(init?.headers).get("authorization");
		if (nameOf(authorization) === undefined)
			throw new Error("a request without a token of the application's");
		const before = turn;
		let done: () => void = () => undefined;
		turn = new Promise((resolve) => {
			done = resolve;
		});
		await before;
		await recorder.until(() => recorder.line === "up");
		recorder.token = tokens[nameOf(authorization) ?? "expired"];
		sent = done;
		return recorder.fetch(input, init);
	};

	const connected: TestClient[] = [];
	const heard: RecoveryEvent[] = [];
	const asked: (string | readonly string[])[] = [];
	const questions: RepeatQuestion[] = [];
	const client = createRecoveringClient<TestClient>({
		url,
		async connect(fetch) {
			const made = await connectClient(options.client, url, {
				...recorder,
				fetch: fetch as Recorder["fetch"],
			});
			connected.push(made);
			return made;
		},
		token(request) {
			asked.push(request.required?.aud ?? request.reason);
			const name = cell.token(request);
			if (name === undefined) return undefined;
			const token = `${name}.${issued.size + 1}`;
			issued.set(token, name);
			return token;
		},
		allowedResources: ["https://mcp.example.com/tools/*"],
		...(options.mayRepeat !== undefined && {
			mayRepeat(question: RepeatQuestion) {
				questions.push(question);
				return options.mayRepeat === true;
			},
		}),
		onRecovery: (event) => heard.push(event),
		recoveryTimeout: options.recoveryTimeout ?? RECOVERY_TIMEOUT,
		fetch: send,
	});

	/** Those of calls: what their ids begin with. */
	const streams: string[] = [];
	const calls: RunningCall[] = [];
	const made: Promise<Settled>[] = [];
	const session = () => connected.at(-1)?.session ?? "";
	const idsOf = ({ text }: Exchange) => framesOf(text).flatMap(({ id }) => id ?? []);

	/** Resolves when the first event of its stream has come. */
	async function opened(running: RunningCall): Promise<RunningCall> {
		calls.push(running);
		const call = await events.openCall(sessionKey(session()), running.id);
		const first = () =>
			recorder.exchanges.flatMap(idsOf).find((id) => parseEventId(id)?.stream === (call?.stream ?? ""));
		await recorder.until(() => first() !== undefined);
		const begin = (first() ?? "").replace(/\d+$/, "");
		if (!streams.includes(begin)) streams.push(begin);
		return running;
	}

	async function settle(tool: string, name: string): Promise<Settled> {
		const started = performance.now();
		let runs = 0;
		const settled = client
			.call(async (it) => {
				runs += 1;
				const { text = "", error } = await it.call(tool, runs === 1 ? name : `${name}${runs}`);
				if (error !== undefined) throw error;
				return text;
			})
			.then(
				(text) => ({ text, took: performance.now() - started }),
				(error: unknown) => ({ error, took: performance.now() - started }),
			);
		return Promise.race([settled, sleep(BOUND, { took: BOUND }, { ref: false })]);
	}

	function words(message: object): string {
		const { result, error, id, params } = message as {
			id?: unknown;
			result?: { content: readonly { text: string }[] };
			error?: { code: number };
			params?: { message?: string };
		};
		if (error !== undefined) return `error ${error.code} of ${calls.find((call) => call.id === id)?.name}`;
		return result?.content[0]?.text ?? params?.message ?? JSON.stringify(message);
	}

	function line({ lastEventId, method, token, status, text, end }: Exchange, stream: string): string {
		const who = Object.entries(tokens).find(([, value]) => value === token)?.[0] ?? "?";
		const asks = lastEventId === undefined ? method : `${method} after ${lastEventId.slice(stream.length)}`;
		if (status !== 200) return `${asks}, ${who}, ${status}`;
		const frames = framesOf(text).map(({ event, id, data }) => {
			const what = data === "" ? "" : event === "error" ? "refusal" : words(JSON.parse(data));
			return [id?.slice(stream.length), what].join(" ").trim();
		});
		// The client leaves at a refusal, before or after the rest has come.
		const refused = frames.indexOf("refusal");
		const came = refused < 0 ? `${frames.join(", ")}; ${end}` : frames.slice(0, refused + 1).join(", ");
		return `${asks}, ${who}, 200: ${came}`;
	}

	const on = (stream: string) =>
		recorder.exchanges.filter(
			(one) => one.lastEventId?.startsWith(stream) || idsOf(one).some((id) => id.startsWith(stream)),
		);

	const cell: RecoveringCell = {
		options,
		events,
		recorder,
		wire,
		connected,
		token: ({ reason }) => (reason === "start" ? "wide" : undefined),
		asked,
		questions,
		async start(...named) {
			if (named.length > 1) connected.at(-1)?.sendTogether(named.length);
			const endings = named.map(([tool, name]) => settle(tool, name));
			made.push(...endings);
			const started: Started[] = [];
			for (const [index, [, name]] of named.entries()) {
				const running = await opened(await host.calls.running(name));
				started.push({ running, settled: endings[index] ?? Promise.reject(new Error("not called")) });
			}
			return started;
		},
		repetition: async (name) => opened(await host.calls.running(`${name}2`)),
		received: (n) =>
			recorder.until(() => recorder.exchanges.some((exchange) => idsOf(exchange).includes(cell.id(n)))),
		async drop() {
			recorder.line = "down";
			await wire.cut(streams[0] ?? "");
		},
		comeBack() {
			recorder.line = "up";
		},
		expire() {
			for (const token of issued.keys()) issued.set(token, "expired");
		},
		async intrude(n) {
			const response = await fetch(`http://127.0.0.1:${host.port}/mcp`, {
				headers: {
					accept: "text/event-stream",
					authorization: `Bearer ${tokens.stranger}`,
					"mcp-session-id": session(),
					"last-event-id": cell.id(n),
				},
			});
			return { status: response.status, text: await response.text() };
		},
		id: (n) => `${streams[0]}${n}`,
		transcript(of = 0) {
			const stream = streams[of] ?? "none";
			return on(stream).map((exchange) => line(exchange, stream));
		},
		given: () => connected.flatMap(({ messages }) => messages.map(words)),
		// The session's own stream, of which there may be something to hear too, is of no method.
		steps: () => steps(heard.filter(({ type, method }) => type !== "refused" || method !== undefined)),
		isOpen: ({ id }) => events.isOpen(sessionKey(session()), id),
		async expectSettled() {
			for (const { took, error } of await Promise.all(made)) {
				expect(took).toBeLessThan(BOUND);
				if (error !== undefined) expect(error).toBeInstanceOf(RecoveryError);
			}
			const errors = connected.flatMap((one) => one.errors);
			expect(errors.filter((text) => /unknown message/i.test(text))).toEqual([]);
		},
		async close() {
			recorder.line = "up";
			await client.close();
			await wire.close();
			await host.close();
		},
	};

	// Connects it; its session's own stream is not one of calls.
	await client.call((it) => it.ping());
	await recorder.until(() => recorder.exchanges.some(({ method, text }) => method === "GET" && text !== ""));
	for (const { messages } of connected) (messages as object[]).length = 0;
	return cell;
}

/** Ends a call; resolves when its result is in the event log. */
export async function finish(cell: RecoveringCell, running: RunningCall): Promise<void> {
	running.finish();
	await vi.waitFor(async () => expect(await cell.isOpen(running)).toBe(false));
}
