import type { WholeAnswer } from "./answer.ts";
import type { RequestHeaders } from "./headers.ts";
import { errorAnswer } from "./refusal.ts";

export interface OriginOptions {
	/** Origins of browser clients. A request with any other `Origin` is refused. Default: none. */
	readonly allowedOrigins?: readonly string[];
	/** Values of `Host` that are answered, against DNS rebinding. Default: any. */
	readonly allowedHosts?: readonly string[];
}

const METHODS = ["GET", "POST", "DELETE"];

/** Whether an MCP endpoint has this method. */
export function isMcpMethod(method: string): method is "GET" | "POST" | "DELETE" {
	return METHODS.includes(method);
}

const ERROR = -32000;

/** Checks Host and Origin (MCP 2025-11-25, Security Warning), and says what a browser has to be told (CORS). */
export function checkOrigin(
	{ origin, host }: RequestHeaders,
	{ allowedOrigins = [], allowedHosts }: OriginOptions,
): { refused?: WholeAnswer; headers: Readonly<Record<string, string>> } {
	if (allowedHosts !== undefined && !allowedHosts.includes(host ?? "")) {
		return { refused: errorAnswer(403, { code: ERROR, message: "Invalid Host header" }), headers: {} };
	}
	if (origin === undefined) return { headers: {} };
	if (!allowedOrigins.includes(origin)) {
		return { refused: errorAnswer(403, { code: ERROR, message: "Invalid Origin header" }), headers: {} };
	}
	return {
		headers: {
			"access-control-allow-origin": origin,
			"access-control-expose-headers": "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, MCP-Protocol-Version",
			vary: "Origin",
		},
	};
}

/**
 * The answer to a method that an endpoint does not have, HEAD among them: it must not open a stream.
 *
 * @param methods that it has; default: those of an MCP endpoint
 */
export function methodAnswer(method: string, headers: RequestHeaders, methods = METHODS): WholeAnswer {
	const allowed = methods.join(", ");
	if (method === "OPTIONS" && headers.origin !== undefined) {
		return {
			status: 204,
			headers: {
				"access-control-allow-methods": allowed,
				"access-control-allow-headers":
					"Authorization, DPoP, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID",
				"access-control-max-age": "600",
			},
			body: "",
		};
	}
	return errorAnswer(405, { code: ERROR, message: "Method not allowed." }, { allow: allowed });
}
