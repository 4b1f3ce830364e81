const revision = {
	type: "object",
	properties: { revision: { type: "string" } },
	required: ["revision"],
} as const;
const pointers = { type: "array", items: { type: "string", pattern: "^/" } } as const;
const text = { type: "string" } as const;

/** One line of a decision log, as JSON Schema 2020-12: {@link DecisionLogEvent}. */
export const decisionLogSchema = {
	$schema: "https://json-schema.org/draft/2020-12/schema",
	title: "DecisionLogEvent",
	type: "object",
	properties: {
		labels: { type: "object", additionalProperties: text },
		decision_id: { type: "string", format: "uuid" },
		trace_id: { type: "string", pattern: "^[0-9a-f]{32}$" },
		span_id: { type: "string", pattern: "^[0-9a-f]{16}$" },
		revision: text,
		bundles: { type: "object", additionalProperties: revision },
		path: { type: "string", pattern: "^(shadow/)?mcp/(session|call|resume|delivery)/decision$" },
		input: true,
		result: true,
		erased: pointers,
		masked: pointers,
		timestamp: { type: "string", format: "date-time" },
		metrics: { type: "object", additionalProperties: { type: "number" } },
		custom: {
			type: "object",
			properties: {
				moment: { type: "string", enum: ["session", "call", "resume", "delivery"] },
				outcome: text,
				code: text,
				input: { type: "string", enum: ["whole", "partial", "none"] },
				truncated: { const: true },
				mask_error: { const: true },
				shadow: {
					type: "object",
					properties: {
						revision: text,
						outcome: text,
						code: text,
						differences: { type: "array", items: text },
						widens: { type: "boolean" },
					},
					required: ["revision", "outcome", "code", "differences", "widens"],
					additionalProperties: false,
				},
			},
			required: ["moment", "outcome", "code", "input"],
			additionalProperties: false,
		},
	},
	required: ["labels", "decision_id", "path", "timestamp", "metrics", "custom"],
	additionalProperties: false,
} as const;
