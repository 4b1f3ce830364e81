import type { Refused } from "./decision.ts";
import { type Failure, RecoveryError } from "./errors.ts";
import type { Report } from "./events.ts";
import type { MayAskFor } from "./resources.ts";
import { TimedOut, unless, within } from "./timing.ts";

/** What kind of token is needed. */
export interface TokenRequest {
	/**
	 * - `start`: the first one
	 * - `reauthenticate`: the last one is not good any more; a fresh one of the same kind
	 * - `reauthorize`: one that covers `required`
	 */
	readonly reason: "start" | "reauthenticate" | "reauthorize";
	/** `reauthorize`: the resource indicators (RFC 8707) and scopes that it must have, all of them. */
	readonly required?: { readonly aud: readonly string[]; readonly scope: readonly string[] };
	/** Aborted when nobody waits for it any more. */
	readonly signal: AbortSignal;
}

/** `undefined`: there is none; at the start, requests then go out without one. */
export type TokenSource = (request: TokenRequest) => Promise<string | undefined> | string | undefined;

/** A token in use. */
export interface Held {
	readonly token: string | undefined;
}

type Wanted = Omit<TokenRequest, "signal">;

/** What the application has been asked for since the server last sent something. */
export type Asked = Set<string>;

export type TokenFailure = Pick<Failure, "code" | "message">;

export interface Tokens {
	/**
	 * The token that requests go out with.
	 *
	 * @throws {RecoveryError} `not_authorized`, `recovery_timeout`
	 */
	current(signal: AbortSignal): Promise<Held>;
	/** A token to try after `used` was refused: one that another request has got since, or one from the application. */
	renew(
		refused: Refused,
		used: Held,
		asked: Asked,
		signal: AbortSignal,
		report: Report,
	): Promise<Held | TokenFailure>;
}

/** How often the application is asked while the server sends nothing. */
const MAX_ASKS = 3;
/** RFC 6750 section 2.1, `b64token`. Nothing else belongs in a header, nor in the message of what refuses it. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

const NOT_TAKEN: TokenFailure = { code: "not_authorized", message: "The server does not take the token" };

/**
 * The tokens of a client, from the application. Requests for the same are made once, however many calls wait for it.
 *
 * @param timeout milliseconds that a token may take
 */
export function createTokens(source: TokenSource, mayAskFor: MayAskFor, timeout: number): Tokens {
	const waiting = new Map<string, Promise<Held | TokenFailure>>();
	let held: Held | undefined;

	/** Whoever asks for the same waits with those who asked before. */
	function ask(request: Wanted, signal: AbortSignal, report?: Report): Promise<Held | TokenFailure> {
		const key = JSON.stringify(request);
		const asking = waiting.get(key) ?? fetchToken(request, report).finally(() => waiting.delete(key));
		waiting.set(key, asking);
		return unless(signal, asking);
	}

	// Not bound to the signal of one call: others may wait for it too.
	async function fetchToken(request: Wanted, report?: Report): Promise<Held | TokenFailure> {
		try {
			return await within(timeout, undefined, async (signal) => {
				for (const indicator of request.required?.aud ?? []) {
					if (!(await mayAskFor(indicator, signal))) return notAllowed(indicator);
				}
				signal.throwIfAborted();
				report?.({ type: "token", ...request });
				const token = await source({ ...request, signal });
				signal.throwIfAborted();
				if (token === undefined && request.reason !== "start") return NONE;
				if (token !== undefined && !(typeof token === "string" && TOKEN.test(token))) return MALFORMED;
				held = { token };
				return held;
			});
		} catch (error) {
			return error instanceof TimedOut ? TOO_LATE : NONE;
		}
	}

	return {
		async current(signal) {
			if (held !== undefined) return held;
			const got = await ask({ reason: "start" }, signal);
			if ("code" in got) throw new RecoveryError({ ...got, mayHaveRun: false });
			return got;
		},

		async renew({ decision }, used, asked, signal, report) {
			if (held !== undefined && held.token !== used.token) return held;
			const request =
				decision?.outcome === "reauthorize"
					? ({ reason: "reauthorize", required: decision.required } as const)
					: ({ reason: "reauthenticate" } as const);
			const key = JSON.stringify(request);
			if (asked.has(key) || asked.size >= MAX_ASKS) return NOT_TAKEN;
			asked.add(key);
			return ask(request, signal, report);
		},
	};
}

const NONE: TokenFailure = { code: "not_authorized", message: "The application has no such token" };
const MALFORMED: TokenFailure = {
	code: "not_authorized",
	message: "What the application gave is not a Bearer token",
};
const TOO_LATE: TokenFailure = { code: "recovery_timeout", message: "The application's token took too long" };

function notAllowed(indicator: string): TokenFailure {
	const name = JSON.stringify(indicator.slice(0, 200));
	return {
		code: "resource_not_allowed",
		message: `The server asks for a token for ${name}, which neither its metadata nor allowedResources names`,
	};
}
