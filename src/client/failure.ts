import { isRecord, REFUSED, type Refused } from "./decision.ts";
import { type Failure, RecoveryError } from "./errors.ts";
import type { Call } from "./messages.ts";

/**
 * A failure as the JSON-RPC error that its call gets, so that every MCP client gives it to its caller at once.
 *
 * @param mark tells it from what a server sends
 */
export function failureMessage({ id, method, tool }: Call, failure: Failure, mark: string): string {
	const data = { ...failure, method, tool, mark };
	return JSON.stringify({ jsonrpc: "2.0", id, error: { code: REFUSED, message: failure.message, data } });
}

/** The failure that an MCP client has made an error of; `undefined`: the error is of something else. */
export function failureIn(error: unknown, mark: string): RecoveryError | undefined {
	if (error instanceof RecoveryError) return error;
	if (!isRecord(error) || !isRecord(error.data) || error.data.mark !== mark) return undefined;
	const { mark: _, ...failure } = error.data;
	return new RecoveryError(failure as unknown as Failure);
}

/** The failure of calls whose result there may be, and cannot be had. */
export function lost(message: string, refused?: Refused): Failure {
	return { code: "result_lost", message, mayHaveRun: true, ...refused };
}

/** The failure of calls that are refused, whatever the token. */
export function refusal(refused: Refused, mayHaveRun: boolean): Failure {
	const reason = refused.decision?.code ?? `status ${refused.status}`;
	return { code: "refused", message: `The server refuses: ${reason}`, mayHaveRun, ...refused };
}
