import type { Refusal, RefusalOutcome } from "./decision.ts";
import type { RecoveryErrorCode } from "./errors.ts";
import type { TokenRequest } from "./tokens.ts";

/** What a request is about, as far as it is known. */
export interface Subject {
	/** The JSON-RPC method. */
	readonly method?: string;
	/** The tool of a `tools/call`. */
	readonly tool?: string;
}

/** A step of a recovery. It holds neither tokens nor session ids. */
export type RecoveryEvent = Subject & RecoveryStep;

export type RecoveryStep =
	/** A stream ended without the call's result. `cursor` is the last SSE id: what comes after it is still to come. */
	| { readonly type: "dropped"; readonly cursor?: string }
	/** The server refused a request, or to go on with a stream. */
	| {
			readonly type: "refused";
			readonly outcome: RefusalOutcome;
			readonly decision?: Refusal;
			readonly status?: number;
	  }
	/** The application is asked for a token. */
	| ({ readonly type: "token" } & Omit<TokenRequest, "signal">)
	/** The stream goes on after `cursor`. */
	| { readonly type: "resumed"; readonly cursor: string }
	/** The session is over; the next request opens another. */
	| { readonly type: "reinitialized" }
	/** The call is made again. */
	| { readonly type: "repeated" }
	/** The request is given up; the call may still be made again. */
	| { readonly type: "failed"; readonly code: RecoveryErrorCode };

export type Report = (event: RecoveryEvent) => void;
