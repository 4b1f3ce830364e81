import { type Attributes, isSpanContextValid, trace } from "@opentelemetry/api";

/** The span that is active now, in hex: for `trace` of a decision log. */
export function activeSpan(): { readonly trace_id: string; readonly span_id: string } | undefined {
	const context = trace.getActiveSpan()?.spanContext();
	if (context === undefined || !isSpanContextValid(context)) return undefined;
	return { trace_id: context.traceId, span_id: context.spanId };
}

/** Marks the span that is active now. */
export function addSpanEvent(attributes: Attributes): void {
	trace.getActiveSpan()?.addEvent("mcp.decision", attributes);
}
