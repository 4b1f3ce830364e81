import { RecoveryError } from "./errors.ts";
import type { RecoveryEvent } from "./events.ts";
import { failureIn } from "./failure.ts";
import { createRecoveringFetch } from "./fetch.ts";
import type { Fetch, Ground } from "./ground.ts";
import type { ToolAnnotations } from "./messages.ts";
import { createMayAskFor } from "./resources.ts";
import { MAX_TIMER, TimedOut, within } from "./timing.ts";
import { createTokens, type TokenSource } from "./tokens.ts";

/** A call whose result is lost, for the application to say whether it may be made again. */
export interface RepeatQuestion {
	/** The JSON-RPC method. */
	readonly method: string;
	/** The tool of a `tools/call`. */
	readonly tool?: string;
	/** What the server says of the tool, if it has listed it. Its own word: do not rely on it alone. */
	readonly annotations?: ToolAnnotations;
	/** Why there is no result. */
	readonly error: RecoveryError;
}

export interface RecoveringClientOptions<C> {
	/** The MCP endpoint. Tokens go to its origin only. */
	readonly url: string | URL;
	/**
	 * Makes a client and connects it, over a transport that uses this `fetch` and has no `authProvider` of its own.
	 * Called for the first call, and when a session is over.
	 */
	readonly connect: (fetch: Fetch) => Promise<C>;
	/** Where tokens come from. */
	readonly token: TokenSource;
	/**
	 * Resource indicators (RFC 8707) that the server may ask tokens for, beside the one that its own metadata (RFC 9728)
	 * names. One whose path ends in `/*` stands for what lies below it. Default: none.
	 */
	readonly allowedResources?: readonly string[];
	/**
	 * Whether a call may be made again that the server may have run already: only where this returns `true`.
	 * Default: never.
	 */
	readonly mayRepeat?: (question: RepeatQuestion) => boolean;
	/** Hears of each step of a recovery. */
	readonly onRecovery?: (event: RecoveryEvent) => void;
	/** Milliseconds that a recovery may take. Default: 8000. */
	readonly recoveryTimeout?: number;
	/** To the network. Default: the global `fetch`. */
	readonly fetch?: Fetch;
}

export interface RecoveringClient<C> {
	/**
	 * Runs an operation, which makes one request with the client that it is given, until that has its result. It is
	 * run again on another client when the session is over, if its request was refused, or may be repeated.
	 * Errors that are not about recovery are those of the operation, as they are.
	 *
	 * @throws {RecoveryError} why there is no result
	 */
	call<T>(operation: (client: C) => Promise<T>): Promise<T>;
	/** Closes the client; calls that are under way reject. */
	close(): Promise<void>;
}

/** A client and its session, from `connect` until its last call has settled. */
interface Connection<C> {
	readonly client: Promise<C>;
	calls: number;
	/** No further call is made on it. */
	isOver: boolean;
}

/** How often a call is made again. */
const MAX_REPEATS = 3;
const RECOVERY_TIMEOUT = 8_000;

/**
 * A client of a guarded MCP server, around a client of either SDK: a call is complete on its own result or error only,
 * and whatever comes in between (a drop, a token that is too narrow, has expired or is of another audience, a lost
 * session) is dealt with as the server's answer and the application's policy say.
 *
 * @throws {TypeError} for wrong options
 */
export function createRecoveringClient<C extends { close(): Promise<void> }>(
	options: RecoveringClientOptions<C>,
): RecoveringClient<C> {
	const ground = createGround(options);
	const { timeout, mark, annotations, report } = ground;
	const connections = new Set<Connection<C>>();
	let current: Connection<C> | undefined;
	let isClosed = false;

	function connect(): Connection<C> {
		const client = Promise.resolve(createRecoveringFetch(ground)).then(options.connect);
		const connection: Connection<C> = { client, calls: 0, isOver: false };
		connections.add(connection);
		client.catch(() => retire(connection));
		return connection;
	}

	function retire(connection: Connection<C>): void {
		connection.isOver = true;
		if (current === connection) current = undefined;
		// Other calls may still be under way on it: a session can be over for one token and not for another.
		if (connection.calls > 0 || !connections.delete(connection)) return;
		connection.client.then((client) => client.close()).catch(() => undefined);
	}

	async function run<T>(operation: (client: C) => Promise<T>, before?: RecoveryError): Promise<T> {
		if (isClosed) throw closedError();
		current ??= connect();
		const connection = current;
		connection.calls += 1;
		try {
			return await operation(
				before === undefined ? await connection.client : await inTime(connection, before),
			);
		} catch (error) {
			if (failureIn(error, mark)?.outcome === "reinitialize" && !connection.isOver) {
				report({ type: "reinitialized" });
				retire(connection);
			}
			throw error;
		} finally {
			connection.calls -= 1;
			if (connection.isOver) retire(connection);
		}
	}

	// Connecting is part of a recovery, but for the first time.
	async function inTime(connection: Connection<C>, before: RecoveryError): Promise<C> {
		try {
			return await within(timeout, undefined, () => connection.client);
		} catch (error) {
			if (!(error instanceof TimedOut)) throw error;
			retire(connection);
			const message = "A new session could not be opened in time";
			throw new RecoveryError({ ...before, code: "recovery_timeout", message });
		}
	}

	function mayRunAgain(error: RecoveryError): boolean {
		const { method, tool, code, outcome, mayHaveRun } = error;
		if (!mayHaveRun) return outcome === "reinitialize";
		if (method === undefined || (code !== "result_lost" && code !== "not_authorized")) return false;
		const listed = tool === undefined ? undefined : annotations.get(tool);
		const question = {
			method,
			...(tool !== undefined && { tool }),
			...(listed !== undefined && { annotations: listed }),
			error,
		};
		return options.mayRepeat?.(question) === true;
	}

	return {
		async call(operation) {
			let before: RecoveryError | undefined;
			for (let repeats = 0; ; repeats += 1) {
				try {
					return await run(operation, before);
				} catch (error) {
					const failure = failureIn(error, mark);
					if (failure === undefined) throw error;
					if (repeats === MAX_REPEATS || !mayRunAgain(failure)) throw failure;
					before = failure;
					const { method, tool } = failure;
					report({
						type: "repeated",
						...(method !== undefined && { method }),
						...(tool !== undefined && { tool }),
					});
				}
			}
		},

		async close() {
			isClosed = true;
			await Promise.allSettled([...connections].map(async ({ client }) => (await client).close()));
			connections.clear();
		},
	};
}

function createGround<C>(options: RecoveringClientOptions<C>): Ground {
	const { recoveryTimeout: timeout = RECOVERY_TIMEOUT, onRecovery, token, allowedResources = [] } = options;
	if (typeof token !== "function" || typeof options.connect !== "function") {
		throw new TypeError("`connect` and `token` must be functions");
	}
	if (!(timeout > 0 && timeout <= MAX_TIMER)) {
		throw new TypeError("`recoveryTimeout` must be a number of milliseconds");
	}
	const url = new URL(options.url);
	const fetch: Fetch = options.fetch ?? ((...request) => globalThis.fetch(...request));
	const report: Ground["report"] = (event) => {
		try {
			onRecovery?.(event);
		} catch {
			// A call does not fail because a report of it does.
		}
	};
	const tokens = createTokens(token, createMayAskFor(url, allowedResources, fetch), timeout);
	const mark = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join("");
	return { url, fetch, tokens, timeout, mark, report, annotations: new Map() };
}

function closedError(): RecoveryError {
	return new RecoveryError({
		code: "client_closed",
		message: "The client has been closed",
		mayHaveRun: false,
	});
}
