export { wrap } from "./columns.ts";
export { explain } from "./explain.ts";
export type {
	Claim,
	Comparison,
	Events,
	Explanation,
	Further,
	LoggedDecision,
	Relation,
	Row,
	RowState,
	Run,
	Subject,
	Trial,
} from "./explanation.ts";
export { renderHtml } from "./html.ts";
export type { Asked } from "./oracle.ts";
export { renderText, type TextOptions } from "./text.ts";
export { counted, jsonLine, quote, visible } from "./visible.ts";
