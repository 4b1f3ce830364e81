import { z } from "zod";
import { numberOf } from "./events.ts";
import type { LoggedDecision } from "./host.ts";
import { type Exchange, framesOf } from "./recorder.ts";
import type { Timeline } from "./timeline.ts";

const decision = z.object({
	outcome: z.string(),
	code: z.string(),
	cursor: z.string(),
	deliver: z.number(),
	drift: z.array(z.string()),
	required: z.object({ aud: z.array(z.string()), scope: z.array(z.string()) }).optional(),
});

/** A decision as a client is told it. */
export type ToldDecision = z.infer<typeof decision>;

/** The decision in the data of a JSON-RPC error. */
export function decisionIn(data: unknown): ToldDecision {
	return decision.parse(data);
}

/** The decision that an answer to a resume carries: in its JSON body, or in its `error` event. */
export function toldIn({ headers, text }: Exchange): ToldDecision {
	if (headers.get("content-type")?.startsWith("application/json")) {
		return decisionIn(JSON.parse(text).error.data);
	}
	return decisionIn(JSON.parse(framesOf(text).find(({ event }) => event === "error")?.data ?? "null"));
}

/** Tells of a decision by its outcome and the code of the rule that decided. */
export function tellDecision(
	timeline: Timeline,
	{ moment, outcome, code, held, drift, position }: LoggedDecision,
): void {
	const lines = [`decides (${moment}): ${outcome}, by rule ${code}`];
	if (held !== undefined) {
		const { event_id, tool = "", missing } = held;
		const what = event_id === undefined ? `the running call of ${tool}` : `${numberOf(event_id)} ${tool}`;
		lines.push(`held: ${what}; missing: ${[...missing.aud, ...missing.scope].join(" ")}`);
	}
	if (drift !== undefined) lines.push(`drift: ${drift.join(", ")}`);
	if (position !== undefined && position !== "retained") lines.push(`the cursor is ${position}`);
	timeline.step("guard", ...(lines as [string, ...string[]]));
}
