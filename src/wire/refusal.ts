import type {
	CallDecision,
	DeliveryDecision,
	RequestId,
	ResumeDecision,
	SessionDecision,
} from "../generated/types.ts";
import type { WholeAnswer } from "./answer.ts";
import { type Challenge, challengeOf } from "./challenge.ts";
import { messageFrame } from "./sse.ts";

export type AnyDecision = SessionDecision | CallDecision | ResumeDecision | DeliveryDecision;
export type Refused = Exclude<AnyDecision, { outcome: "proceed" }>;

/** The JSON-RPC error code of a refusal by the guard; `data` is the decision. */
export const REFUSED = -32043;

/** Seconds. */
const RETRY_AFTER = "5";
export const SESSION_NOT_FOUND = { code: -32001, message: "Session not found" };

/** A JSON-RPC error as the body of an HTTP error, without a request that it answers. */
export function errorAnswer(
	status: number,
	error: { code: number; message: string; data?: unknown },
	headers: Readonly<Record<string, string>> = {},
): WholeAnswer {
	return {
		status,
		headers: { "content-type": "application/json", ...headers },
		body: JSON.stringify({ jsonrpc: "2.0", error, id: null }),
	};
}

/** A refusal as an HTTP error. */
export function refusalAnswer(decision: Refused, resourceMetadata: string | undefined): WholeAnswer {
	if (isSessionUnknown(decision)) return errorAnswer(decision.status, SESSION_NOT_FOUND);
	const challenge = challengeFor(decision, resourceMetadata);
	return errorAnswer(decision.status, refusalError(decision), {
		...(challenge !== undefined && { "www-authenticate": challengeOf(challenge) }),
		// RFC 6585 section 4: there is room again when calls end, or events have been sent.
		...(decision.code === "quota_exceeded" && { "retry-after": RETRY_AFTER }),
	});
}

/** A refusal as a JSON-RPC error. A stranger learns nothing from it; the decision is for the same principal only. */
export function refusalError(decision: Refused): { code: number; message: string; data?: object } {
	if (isSessionUnknown(decision)) return SESSION_NOT_FOUND;
	if (decision.code === "principal_drift") return { code: REFUSED, message: "Forbidden" };
	return { code: REFUSED, message: `${decision.outcome}: ${decision.code}`, data: decision };
}

/** A request that brought no good token, before there is anything to decide. */
export function tokenAnswer(
	status: number,
	challenge: Challenge & { readonly description: string },
	headers: Readonly<Record<string, string>> = {},
): WholeAnswer {
	return errorAnswer(
		status,
		{ code: REFUSED, message: challenge.description },
		{ "www-authenticate": challengeOf(challenge), ...headers },
	);
}

// A stranger whose session is kept gets, byte for byte, what an unknown id gets.
function isSessionUnknown({ code, session }: Refused): boolean {
	return code === "session_unknown" || (code === "principal_drift" && session === "keep");
}

function challengeFor(decision: Refused, resourceMetadata: string | undefined): Challenge | undefined {
	switch (decision.outcome) {
		case "reauthenticate":
			return decision.code === "token_missing"
				? { resourceMetadata }
				: { error: "invalid_token", description: "The access token is not valid any more", resourceMetadata };
		case "reauthorize":
			return { error: "insufficient_scope", scope: decision.required.scope, resourceMetadata };
		default:
			return undefined;
	}
}

/** A JSON-RPC error for each call. Without ids: an id would move the client's cursor past what it does not have. */
export function failedFrames(decision: Refused, calls: readonly RequestId[]): string {
	const error = refusalError(decision);
	return calls.map((id) => messageFrame(JSON.stringify({ jsonrpc: "2.0", id, error }))).join("");
}
