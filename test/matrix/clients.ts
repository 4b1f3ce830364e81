import {
	Client as ClientV2,
	StreamableHTTPClientTransport as TransportV2,
} from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { Recorder } from "../../examples/demo/recorder.ts";
import type { Sdk } from "./servers.ts";

export interface CallOptions {
	/** Takes up a call that was made before, from this event on. */
	readonly cursor?: string;
	/** Cancels the call. */
	readonly signal?: AbortSignal;
}

/** How a call ended. */
export interface Ending {
	/** Of its result. */
	readonly text?: string;
	readonly error?: Error & { readonly code?: number; readonly data?: unknown };
}

/** A client of an SDK as it is, with delays that a test can wait for. */
export interface TestClient {
	readonly session: string;
	/** The client's last cursor on the stream of its calls. */
	readonly cursor: string;
	/** Each message that the transport has given the client since it was connected, in order. */
	readonly messages: readonly object[];
	/** Of what the client has reported as an error. */
	readonly errors: readonly string[];
	/** Never rejects. */
	call(tool: string, name: string, options?: CallOptions): Promise<Ending>;
	/** Makes the next `count` calls go out in one POST, as a JSON-RPC batch: their events share one stream. */
	sendTogether(count: number): void;
	/** Resumes a stream by hand. */
	resume(cursor: string): Promise<void>;
	/** Something about the session. */
	ping(): Promise<unknown>;
	close(): Promise<void>;
}

const info = { name: "matrix", version: "1.0.0" };
/** As the SDKs have it, but for the delays: they give up after two attempts. */
const reconnectionOptions = {
	initialReconnectionDelay: 40,
	maxReconnectionDelay: 100,
	reconnectionDelayGrowFactor: 1.5,
	maxRetries: 2,
};
const TIMEOUT = 60_000;

/** `refresh`: what a client of v2 does at a 401 before it asks once more. Without it, it has nothing to do it with. */
export async function connectClient(
	sdk: Sdk,
	url: URL,
	{ fetch }: Recorder,
	refresh?: () => void,
): Promise<TestClient> {
	const options = { fetch, reconnectionOptions };
	if (sdk === "v1") {
		const transport = new TransportV1(url, options);
		const client = new ClientV1(info);
		// The SDK's own class does not fit its own interface under `exactOptionalPropertyTypes`.
		await client.connect(transport as Transport);
		return wrap(client, transport, (params, request) => client.callTool(params, undefined, request));
	}
	const authProvider = { token: async () => undefined, onUnauthorized: async () => refresh?.() };
	const transport = new TransportV2(url, refresh === undefined ? options : { ...options, authProvider });
	const client = new ClientV2(info);
	await client.connect(transport);
	return wrap(client, transport, (params, request) => client.callTool(params, request));
}

interface RequestOptions {
	readonly timeout: number;
	readonly onprogress: () => void;
	readonly onresumptiontoken: (cursor: string) => void;
	readonly resumptionToken?: string;
	readonly signal?: AbortSignal;
}

/** What the clients of both SDKs have. */
interface EitherClient {
	onerror?: ((error: Error) => void) | undefined;
	ping(): Promise<unknown>;
	close(): Promise<void>;
}

interface EitherTransport {
	readonly sessionId?: string | undefined;
	onmessage?: ((message: never, extra?: never) => void) | undefined;
	send(message: never, options?: never): Promise<void>;
	resumeStream(cursor: string, options: Pick<RequestOptions, "onresumptiontoken">): Promise<void>;
}

function wrap(
	client: EitherClient,
	transport: EitherTransport,
	callTool: (
		params: { name: string; arguments: Record<string, unknown> },
		options: RequestOptions,
	) => Promise<unknown>,
): TestClient {
	let cursor = "";
	const messages: object[] = [];
	const errors: string[] = [];
	const onresumptiontoken = (id: string) => {
		cursor = id;
	};
	const { onmessage } = transport;
	transport.onmessage = (message: never, extra?: never) => {
		messages.push(structuredClone(message));
		onmessage?.(message, extra);
	};
	client.onerror = ({ message }) => void errors.push(message);

	return {
		session: transport.sessionId ?? "",
		get cursor() {
			return cursor;
		},
		messages,
		errors,
		call: (tool, name, options = {}) =>
			callTool(
				{ name: tool, arguments: { name } },
				{
					timeout: TIMEOUT,
					onprogress: () => undefined,
					onresumptiontoken,
					...(options.cursor !== undefined && { resumptionToken: options.cursor }),
					...(options.signal !== undefined && { signal: options.signal }),
				},
			).then(
				(result) => ({ text: textOf(result) }),
				(error) => ({ error }),
			),
		sendTogether(count) {
			const send = transport.send.bind(transport);
			const gathered: object[] = [];
			transport.send = async (message, options) => {
				gathered.push(message);
				if (gathered.length < count) return;
				transport.send = send;
				await send(gathered as never, options);
			};
		},
		resume: (from) => transport.resumeStream(from, { onresumptiontoken }),
		ping: () => client.ping(),
		close: () => client.close(),
	};
}

function textOf(result: unknown): string {
	const { content } = result as { content: readonly { text?: string }[] };
	return content.map(({ text }) => text).join("");
}
