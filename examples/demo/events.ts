import { z } from "zod";
import type { EmittedEvent } from "../fastify/unguarded.ts";
import type { EventRow, EventState } from "./timeline.ts";

/** Both hosts give events ids that end in a number within their stream; the rest says which stream it is. */
export function numberOf(id: string): string {
	return id.slice(id.lastIndexOf(".") + 1);
}

export function streamOf(id: string): string {
	return id.slice(0, id.lastIndexOf("."));
}

const message = z.object({
	result: z.unknown(),
	error: z.unknown(),
	method: z.string().optional(),
	params: z.object({ progress: z.number(), total: z.number() }).optional(),
});

export function isResponse(event: EmittedEvent): boolean {
	return "result" in event.message || "error" in event.message;
}

/** The events of a stream that have a message, in order. */
export function messagesOn(stream: string, emitted: readonly EmittedEvent[]): EmittedEvent[] {
	return emitted.filter((event) => streamOf(event.id) === stream);
}

export function rowOf(event: EmittedEvent, state: EventState): EventRow {
	const { params, method = "" } = message.partial().parse(event.message);
	const progress = params && `progress ${params.progress} of ${params.total}`;
	return {
		id: numberOf(event.id),
		tool: event.tool,
		what: isResponse(event) ? "result" : (progress ?? method),
		state,
	};
}

/** Events in a few words: `42–47 search, 48 fetch`. */
export function summary(events: readonly EmittedEvent[]): string {
	const runs: { tool: string; first: string; last: string }[] = [];
	for (const { id, tool = "" } of events) {
		const n = numberOf(id);
		const run = runs.at(-1);
		if (run?.tool === tool && Number(run.last) + 1 === Number(n)) run.last = n;
		else runs.push({ tool, first: n, last: n });
	}
	const text = runs.map(({ tool, first, last }) => `${first === last ? first : `${first}–${last}`} ${tool}`);
	return text.join(", ") || "nothing";
}
