import type { Refusal, RefusalOutcome } from "./decision.ts";

/**
 * Why a call has no result.
 *
 * - `refused`: the server refuses it; `decision` or `status` says why
 * - `not_authorized`: no token that the server would take could be had
 * - `resource_not_allowed`: the server asks for a token for a resource that neither its own metadata (RFC 9728) nor
 *   `allowedResources` names; the application has not been asked for one
 * - `result_lost`: the stream cannot be resumed, and the application has not said that the call may be made again
 * - `recovery_timeout`: the stream could not be resumed in time
 * - `client_closed`: the client has been closed
 */
export type RecoveryErrorCode =
	| "refused"
	| "not_authorized"
	| "resource_not_allowed"
	| "result_lost"
	| "recovery_timeout"
	| "client_closed";

/** Why a call has no result, with all that is known. It holds neither tokens nor session ids. */
export interface Failure {
	readonly code: RecoveryErrorCode;
	readonly message: string;
	/** Whether the server may have run the call, wholly or in part. */
	readonly mayHaveRun: boolean;
	/** What the server wants to happen next, where it said. */
	readonly outcome?: RefusalOutcome;
	/** As a server of mcp-resume-guard sent it. */
	readonly decision?: Refusal;
	/** HTTP status, where there was one. */
	readonly status?: number;
	/** The JSON-RPC method of the call. */
	readonly method?: string;
	/** The tool of a `tools/call`. */
	readonly tool?: string;
}

/** The one error class of `mcp-resume-guard/client`. Misuse (a wrong option) is a `TypeError`. */
export class RecoveryError extends Error implements Failure {
	override readonly name = "RecoveryError";
	declare readonly code: RecoveryErrorCode;
	declare readonly mayHaveRun: boolean;
	declare readonly outcome?: RefusalOutcome;
	declare readonly decision?: Refusal;
	declare readonly status?: number;
	declare readonly method?: string;
	declare readonly tool?: string;

	constructor({ message, ...known }: Failure, options?: ErrorOptions) {
		super(message, options);
		Object.assign(this, known);
	}
}
