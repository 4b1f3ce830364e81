import type { Refused } from "./decision.ts";
import type { Failure } from "./errors.ts";
import { exchange, isEventStream } from "./exchange.ts";
import { lost, refusal } from "./failure.ts";
import type { Ground } from "./ground.ts";
import type { Calls } from "./messages.ts";
import { MAX_TIMER, sleep, within } from "./timing.ts";
import type { Asked, Held } from "./tokens.ts";

/** A POST whose answer is a stream. */
export interface Streaming {
	readonly url: string | URL;
	readonly init: RequestInit & { readonly signal: AbortSignal };
	readonly response: Response;
	/** The token that it was answered under. */
	readonly held: Held;
	/** Those without a result; what is answered goes out of it. */
	readonly calls: Calls;
}

/** Where a stream stands. */
export interface Position {
	/** The SSE id of the last event that was passed on. */
	cursor: string | undefined;
	/** SSE ids of what was passed on. */
	readonly seen: Set<string>;
	/** The token that the stream is, or was last, open under. */
	held: Held;
	/** Milliseconds between connections, if the server said. */
	retry: number | undefined;
	/** Milliseconds that are left without a stream; all of them again when the server sends something. */
	budget: number;
	/** Attempts since the server has sent something. */
	attempts: number;
	asked: Asked;
}

/** How a connection ended. */
export interface End {
	/** The server said why it does not go on. */
	readonly refused?: Refused | undefined;
	/** A clean end for which the server said when to come again (MCP 2025-11-25, polling). */
	readonly polled?: boolean;
}

/** Milliseconds between attempts: doubled each time, up to the longest. */
const MIN_WAIT = 250;
const MAX_WAIT = 4_000;
/** Of the request, or of the moment; all other errors are answers. */
const TRANSIENT = [408, 409, 425, 429];

/** What a stream has again when the server has sent something. */
export function unspent({ timeout }: Ground): Pick<Position, "budget" | "attempts" | "asked"> {
	return { budget: timeout, attempts: 0, asked: new Set() };
}

/**
 * The next connection's answer, or why there is none. Rejects with {@link TimedOut} when the budget is spent.
 */
export async function comeBack(
	ground: Ground,
	streaming: Streaming,
	position: Position,
	{ refused, polled = false }: End,
): Promise<Response | Failure> {
	const { signal } = streaming.init;
	const { cursor } = position;
	ground.report(
		refused === undefined
			? { type: "dropped", ...(cursor !== undefined && { cursor }) }
			: { type: "refused", ...refused },
	);
	const final = refused && finalOf(refused);
	if (final !== undefined) return final;
	if (cursor === undefined) return lost("The stream was lost before it could be resumed", refused);
	if (polled && position.retry !== undefined) {
		Object.assign(position, unspent(ground));
		await sleep(position.retry, signal);
	}
	const started = performance.now();
	try {
		return await within(position.budget, signal, (inTime) =>
			attempt(ground, streaming, { position, cursor, refused, polled }, inTime),
		);
	} finally {
		position.budget -= performance.now() - started;
	}
}

async function attempt(
	ground: Ground,
	streaming: Streaming,
	{ position, cursor, ...end }: End & { position: Position; cursor: string },
	inTime: AbortSignal,
): Promise<Response | Failure> {
	if (end.refused !== undefined) {
		const held = await ground.tokens.renew(end.refused, position.held, position.asked, inTime, ground.report);
		if ("code" in held) return { ...held, mayHaveRun: true, ...end.refused };
		position.held = held;
	}
	let isDue = end.refused !== undefined || end.polled;
	let atLeast = 0;
	for (;;) {
		if (!isDue) await sleep(Math.max(wait(position), atLeast), inTime);
		isDue = false;
		inTime.throwIfAborted();
		const answer = await reopen(ground, streaming, position, cursor);
		if (!("again" in answer)) return answer;
		atLeast = answer.again;
	}
}

/** The stream, why there is none, or in how many milliseconds at least to come again. */
async function reopen(
	ground: Ground,
	{ url, init, response: first }: Streaming,
	position: Position,
	cursor: string,
): Promise<Response | Failure | { again: number }> {
	const { body: _, ...request } = init;
	const headers = new Headers(init.headers);
	headers.delete("content-type");
	headers.set("accept", "text/event-stream");
	headers.set("last-event-id", cursor);
	const opened = first.headers.get("mcp-session-id");
	if (opened !== null) headers.set("mcp-session-id", opened);

	const get = { ...request, method: "GET", headers };
	const exchanged = await exchange(ground, url, get, position.asked, position.held).catch((error) => {
		if (init.signal.aborted) throw error;
	});
	if (exchanged === undefined) return { again: 0 };
	const { response, refused, failure } = exchanged;
	position.held = exchanged.held;
	if (failure !== undefined) return { ...failure, mayHaveRun: true, ...refused };
	const final = refused && finalOf(refused);
	if (final !== undefined) return final;
	if (response.ok && isEventStream(response)) {
		ground.report({ type: "resumed", cursor });
		return response;
	}
	await response.body?.cancel();
	const { status } = response;
	// Nothing more comes on the stream (HTML Living Standard section 9.2.1), and the call's own result has not come.
	if (status === 204) return { ...lost("The stream has ended without the result"), status };
	if (response.ok || status >= 500 || TRANSIENT.includes(status)) return { again: retryAfter(response) };
	return { ...lost("The stream cannot be resumed"), status };
}

// What no token helps.
function finalOf(refused: Refused): Failure | undefined {
	switch (refused.outcome) {
		case "reissue":
			return lost("The stream cannot be resumed", refused);
		case "reinitialize":
			return lost("The session is over", refused);
		case "refuse":
			return refusal(refused, true);
		default:
			return undefined;
	}
}

// Not all at once: clients that have lost one server come back together.
function wait(position: Position): number {
	const longest = Math.min(Math.max(position.retry ?? 0, MIN_WAIT) * 2 ** position.attempts, MAX_WAIT);
	position.attempts += 1;
	return longest * (0.5 + Math.random() / 2);
}

/** Milliseconds (RFC 9110 section 10.2.3; dates are passed over). */
function retryAfter({ headers }: Response): number {
	const seconds = headers.get("retry-after") ?? "";
	return /^\d+$/.test(seconds) ? Math.min(Number(seconds) * 1000, MAX_TIMER) : 0;
}
