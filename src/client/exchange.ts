import { type Refused, refusedByResponse } from "./decision.ts";
import type { Ground } from "./ground.ts";
import { within } from "./timing.ts";
import type { Asked, Held, TokenFailure } from "./tokens.ts";

/** What became of a request, tokens and all. */
export interface Exchanged {
	readonly response: Response;
	/** The token that it was answered under. */
	readonly held: Held;
	/** The server refuses the request, and no token would help. */
	readonly refused?: Refused;
	/** A token would help, and none could be had. */
	readonly failure?: TokenFailure;
}

/**
 * Sends a request under a token. One that is refused for its token has not been acted upon, and is sent again under
 * another, as long as there is one. Rejects as `fetch` does, or when a token takes too long.
 *
 * @throws {RecoveryError} there is no token to start with
 */
export async function exchange(
	ground: Ground,
	url: string | URL,
	init: RequestInit & { readonly signal: AbortSignal },
	asked: Asked,
	first?: Held,
): Promise<Exchanged> {
	const { tokens, fetch, report } = ground;
	const headers = new Headers(init.headers);
	let held = first ?? (await tokens.current(init.signal));
	for (;;) {
		headers.delete("authorization");
		if (held.token !== undefined) headers.set("authorization", `Bearer ${held.token}`);
		const response = await fetch(url, { ...init, headers });
		if (response.status < 400) return { response, held };
		const body = await within(ground.timeout, init.signal, () => response.text());
		const whole = new Response(body, response);
		const refused = refusedByResponse(response.status, body, headers.has("mcp-session-id"));
		if (refused === undefined) return { response: whole, held };
		report({ type: "refused", ...refused });
		if (refused.outcome !== "reauthenticate" && refused.outcome !== "reauthorize") {
			return { response: whole, held, refused };
		}
		const renewed = await tokens.renew(refused, held, asked, init.signal, report);
		if ("code" in renewed) return { response: whole, held, refused, failure: renewed };
		held = renewed;
	}
}

export function isEventStream({ headers }: Response): boolean {
	return headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() === "text/event-stream";
}
