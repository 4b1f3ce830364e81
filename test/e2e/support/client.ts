import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { onTestFinished } from "vitest";
import { numberOf, streamOf } from "../../../examples/demo/events.ts";
import { createRecorder, deliveredIn, type Recorder } from "../../../examples/demo/recorder.ts";
import type { Host } from "./host.ts";

/** Clients of both major releases of the MCP SDK. */
export const versions = ["v1", "v2"] as const;
export type Version = (typeof versions)[number];

export interface Ending {
	readonly text?: string;
	readonly error?: Error & { readonly code?: unknown; readonly data?: unknown };
	/** Milliseconds since the call. */
	readonly after: number;
}

export interface TestCall {
	/** Never rejects. */
	readonly ending: Promise<Ending>;
	readonly progress: readonly number[];
	/** What the client would send as `Last-Event-ID`: the id of the last event that it has of this call. */
	readonly cursor: string;
}

export interface CallOptions {
	readonly cursor?: string;
	readonly timeout?: number;
}

export interface TestClient {
	readonly recorder: Recorder;
	readonly session: string;
	/** What has been reported to `onerror`. */
	readonly errors: readonly Error[];
	/** Methods of the notifications that no handler was there for. */
	readonly notified: readonly string[];
	call(tool: string, args?: object, options?: CallOptions): TestCall;
	/** Resolves when the client has the event with that number of the call's stream. */
	has(call: TestCall, n: number): Promise<void>;
	/** Makes the next `count` requests go out in one POST; the first has the cursor of their stream. */
	sendTogether(count: number): void;
	resumeStream(cursor: string): Promise<void>;
	ping(): Promise<unknown>;
	terminateSession(): Promise<void>;
	close(): Promise<void>;
	/** The ids of the events of a stream that came, in order. */
	delivered(stream: string): string[];
}

export interface ConnectOptions {
	readonly token?: string;
	/** Milliseconds before the first try to reconnect, 1,000 in the SDKs; the second comes after half as much again. */
	readonly delay?: number;
	/** Tries to reconnect before it gives up. Default: 2, as in the SDKs. */
	readonly maxRetries?: number;
	/** What the user answers when asked. */
	readonly answer?: () => Promise<{ action: "accept"; content: { name: string } }>;
}

const info = { name: "test", version: "1.0.0" };
const answerNobody = async () => ({ action: "accept" as const, content: { name: "nobody" } });

export async function connect(
	version: Version,
	host: Host,
	{ token, delay = 50, maxRetries = 2, answer = answerNobody }: ConnectOptions = {},
): Promise<TestClient> {
	const recorder = createRecorder(token ?? (await host.mint()));
	const options = {
		fetch: recorder.fetch,
		reconnectionOptions: {
			initialReconnectionDelay: delay,
			maxReconnectionDelay: 30_000,
			reconnectionDelayGrowFactor: 1.5,
			maxRetries,
		},
	};
	const errors: Error[] = [];
	const notified: string[] = [];
	const { client, transport, callTool } =
		version === "v1" ? createV1(host, options, answer) : createV2(host, options, answer);
	client.onerror = (error) => void errors.push(error);
	client.fallbackNotificationHandler = async ({ method }) => void notified.push(method);
	await client.connect(transport as never);
	const session = transport.sessionId ?? "";
	host.keepSecret(session);
	onTestFinished(() => client.close());

	return {
		recorder,
		session,
		errors,
		notified,
		call(tool, args = {}, { cursor: resumptionToken, timeout = 10_000 } = {}) {
			const progress: number[] = [];
			let cursor = resumptionToken ?? "";
			const began = performance.now();
			const ending = callTool(
				{ name: tool, arguments: { ...args } },
				{
					timeout,
					...(resumptionToken !== undefined && { resumptionToken }),
					onprogress: (update: { progress: number }) => void progress.push(update.progress),
					onresumptiontoken: (id: string) => {
						cursor = id;
					},
				},
			).then(
				(result) => ({ text: textOf(result), after: performance.now() - began }),
				(error: Error) => ({ error, after: performance.now() - began }),
			);
			return {
				ending,
				progress,
				get cursor() {
					return cursor;
				},
			};
		},
		has: (call, n) => recorder.until(() => Number(numberOf(call.cursor)) >= n),
		sendTogether: (count) => sendTogether(transport, count),
		resumeStream: (cursor) => transport.resumeStream(cursor),
		ping: () => client.ping(),
		terminateSession: () => transport.terminateSession(),
		close: () => client.close(),
		delivered: (stream) => deliveredIn(recorder.exchanges).filter((id) => streamOf(id) === stream),
	};
}

/** The client's streams drop; it is back, with this token, when `meanwhile` is done. */
export async function dropAndReturn(
	host: Host,
	{ recorder, session }: TestClient,
	token: string,
	meanwhile: () => Promise<unknown> = async () => {},
): Promise<void> {
	recorder.line = "down";
	await host.drop(session);
	await meanwhile();
	recorder.token = token;
	recorder.line = "up";
}

type CallTool = (
	params: { name: string; arguments: Record<string, unknown> },
	options: object,
) => Promise<unknown>;

type TransportOptions = NonNullable<ConstructorParameters<typeof TransportV1>[1]>;

function createV1(host: Host, options: TransportOptions, answer: NonNullable<ConnectOptions["answer"]>) {
	const client = new ClientV1(info, { capabilities: { elicitation: {} } });
	client.setRequestHandler(ElicitRequestSchema, answer);
	const callTool: CallTool = (params, options) => client.callTool(params, undefined, options);
	return { client, transport: new TransportV1(new URL(host.mcp), options), callTool };
}

function createV2(
	host: Host,
	{ fetch, reconnectionOptions }: TransportOptions,
	answer: NonNullable<ConnectOptions["answer"]>,
) {
	const client = new Client(info, { capabilities: { elicitation: {} } });
	client.setRequestHandler("elicitation/create", answer);
	const transport = new StreamableHTTPClientTransport(new URL(host.mcp), {
		...(fetch && { fetch }),
		...(reconnectionOptions && { reconnectionOptions }),
	});
	const callTool: CallTool = (params, options) => client.callTool(params, options);
	return { client, transport, callTool };
}

function textOf(result: unknown): string {
	const { content } = result as { content: { text?: string }[] };
	return content.map(({ text = "" }) => text).join("");
}

interface Sending {
	send(message: never, options?: object): Promise<void>;
}

function sendTogether(transport: object, count: number): void {
	const sending = transport as Sending;
	const send = sending.send.bind(sending);
	const gathered: { message: unknown; options: object | undefined }[] = [];
	let sent = (_sending: Promise<void>) => {};
	const all = new Promise<void>((resolve) => {
		sent = resolve;
	});
	sending.send = (message, options) => {
		gathered.push({ message, options });
		if (gathered.length === count) {
			sending.send = send;
			sent(send(gathered.map(({ message }) => message) as never, gathered[0]?.options));
		}
		return all;
	};
}
