import type { Decision } from "../generated/types.ts";

/** What a server of mcp-resume-guard decided, as it sent it: who, where and what is missing, but no secret. */
export type Refusal = Exclude<Decision, { outcome: "proceed" }>;

/** What happens next (see `outcome` in schemas/decision.json). */
export type RefusalOutcome = Refusal["outcome"];

/** A refusal, as far as the server said what it is. */
export interface Refused {
	readonly outcome: RefusalOutcome;
	/** HTTP status, where it came as one. */
	readonly status?: number;
	/** Absent: the HTTP status is all there is. */
	readonly decision?: Refusal;
}

/** The JSON-RPC error code of a refusal; `data` is the decision. */
export const REFUSED = -32043;

const outcomes: readonly unknown[] = [
	"reauthenticate",
	"reauthorize",
	"reinitialize",
	"reissue",
	"refuse",
] satisfies RefusalOutcome[];

/** The refusal that an HTTP error is; `undefined`: it does not say what to do next. */
export function refusedByResponse(status: number, body: string, hasSession: boolean): Refused | undefined {
	const decision = refusalOf(parse(body));
	if (decision !== undefined) return { outcome: decision.outcome, status, decision };
	if (status === 401) return { outcome: "reauthenticate", status };
	// MCP 2025-11-25, Session Management: the session is not there any more.
	if (status === 404 && hasSession) return { outcome: "reinitialize", status };
	return undefined;
}

/** The refusal in a JSON-RPC error. */
export function refusalOf(message: unknown): Refusal | undefined {
	if (!isRecord(message) || !isRecord(message.error) || message.error.code !== REFUSED) return undefined;
	return readRefusal(message.error.data);
}

/** The refusal in the data of an `event: error` frame. */
export function refusalOfFrame(data: string): Refusal | undefined {
	return readRefusal(parse(data));
}

/** JSON text as a value; `undefined`: it is none. */
export function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

export function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null;
}

// What is acted upon is looked at; the rest is for people.
function readRefusal(value: unknown): Refusal | undefined {
	if (!isRecord(value) || !outcomes.includes(value.outcome) || typeof value.code !== "string")
		return undefined;
	if (value.outcome === "reauthorize") {
		const { required } = value;
		if (!isRecord(required) || !isStrings(required.aud) || !isStrings(required.scope)) return undefined;
		if (required.aud.length === 0) return undefined;
	}
	return value as unknown as Refusal;
}

function isStrings(value: unknown): value is string[] {
	return Array.isArray(value) && value.every((item) => typeof item === "string");
}
