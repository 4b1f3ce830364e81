import {
	Client,
	type JSONRPCMessage,
	LATEST_PROTOCOL_VERSION,
	StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { decodeJwt } from "jose";
import { numberOf, streamOf } from "./events.ts";
import { createRecorder, type Exchange, type Recorder, type RecorderHooks } from "./recorder.ts";
import type { Timeline } from "./timeline.ts";

/** How a call ended. */
export interface Ending {
	/** Of its result. */
	readonly text?: string;
	readonly error?: Error & { readonly data?: unknown };
}

export interface Call {
	/** Never rejects. */
	readonly ending: Promise<Ending>;
	/** Of each progress notification that the caller was given. */
	readonly progress: readonly number[];
}

export interface CallOptions {
	/** Takes up a call that was made before, from this event on. */
	readonly cursor?: string;
	/** Milliseconds. */
	readonly timeout?: number;
}

/** A client of the MCP SDK, with nothing changed but the `fetch` that it is given. */
export interface DemoClient {
	readonly client: Client;
	readonly transport: StreamableHTTPClientTransport;
	readonly recorder: Recorder;
	readonly session: string;
	/** The id of the last event of a call that the client has: what it will send as `Last-Event-ID`. */
	readonly cursor: string;
	call(tool: string, args: object, options?: CallOptions): Call;
}

/** Connects; the timeline then tells of each resume of the call's stream, and also of the session's own stream. */
export async function connect(
	mcp: string,
	token: string,
	timeline: Timeline,
	{ ownStream = false } = {},
): Promise<DemoClient> {
	let cursor = "";
	const isOfCall = (id: string) => cursor !== "" && streamOf(id) === streamOf(cursor);
	const nameOf = (id: string) => {
		if (isOfCall(id)) return numberOf(id);
		return ownStream ? `${numberOf(id)} of the session's own stream` : undefined;
	};
	const recorder = createRecorder(token, tellResumes(timeline, "client", nameOf));
	const transport = new StreamableHTTPClientTransport(new URL(mcp), { fetch: recorder.fetch });
	const client = new Client({ name: "demo", version: "1.0.0" });
	await client.connect(transport);

	return {
		client,
		transport,
		recorder,
		session: transport.sessionId ?? "",
		get cursor() {
			return cursor;
		},
		call(tool, args, { cursor: resumptionToken, timeout = 20_000 } = {}) {
			const progress: number[] = [];
			const options = {
				timeout,
				...(resumptionToken !== undefined && { resumptionToken }),
				onprogress: (update: { progress: number }) => void progress.push(update.progress),
				onresumptiontoken: (id: string) => {
					cursor = id;
				},
			};
			const ending = client.callTool({ name: tool, arguments: { ...args } }, options).then(
				({ content }) => ({ text: content.map((part) => (part.type === "text" ? part.text : "")).join("") }),
				(error: Error) => ({ error }),
			);
			return { ending, progress };
		},
	};
}

/** Resumes a stream with nothing but a token, a session id and a cursor; resolves when all has come. */
export async function resumeAs(
	who: string,
	{ mcp, token, session, cursor }: { mcp: string; token: string; session: string; cursor: string },
	timeline: Timeline,
): Promise<Exchange> {
	const { fetch, exchange, until } = createRecorder(token, tellResumes(timeline, who, numberOf));
	const transport = new StreamableHTTPClientTransport(new URL(mcp), { fetch, sessionId: session });
	transport.setProtocolVersion(LATEST_PROTOCOL_VERSION);
	await transport.start();
	await transport.resumeStream(cursor).catch(() => undefined);
	const resumed = await exchange(({ lastEventId }) => lastEventId === cursor);
	await until(() => resumed.end !== "open");
	await transport.close();
	return resumed;
}

function tellResumes(
	timeline: Timeline,
	who: string,
	nameOf: (lastEventId: string) => string | undefined,
): RecorderHooks {
	return {
		onSend({ lastEventId, token }) {
			const name = lastEventId && nameOf(lastEventId);
			if (name) timeline.step(who, `asks: GET, Last-Event-ID ${name}, aud ${audienceOf(token)}`);
		},
		onAnswer({ lastEventId, status }) {
			if (lastEventId && nameOf(lastEventId)) timeline.step("host", `answers ${status}`);
		},
	};
}

function audienceOf(token: string): string {
	return [decodeJwt(token).aud ?? []].flat().join(" and ");
}

/** Makes the next `count` messages go out in one POST, as a JSON-RPC batch: their events share one stream. */
export function sendTogether({ transport }: DemoClient, count: number): void {
	const send = transport.send.bind(transport);
	const gathered: JSONRPCMessage[] = [];
	let sent = (_sending: Promise<void>) => {};
	const all = new Promise<void>((resolve) => {
		sent = resolve;
	});
	transport.send = (message, options) => {
		gathered.push(...[message].flat());
		if (gathered.length === count) {
			transport.send = send;
			sent(send(gathered, options));
		}
		return all;
	};
}
