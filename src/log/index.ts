export type { ChannelStats } from "./channel.ts";
export {
	type DecisionLogCustom,
	type DecisionLogEvent,
	type DecisionLogShadow,
	readDecisionLogEvent,
} from "./event.ts";
export { type FileSinkOptions, fileSink } from "./file-sink.ts";
export { type HttpSinkOptions, httpSink } from "./http-sink.ts";
export {
	createDecisionLog,
	type DecisionLog,
	type DecisionLogLimits,
	type DecisionLogOptions,
	type DecisionLogStats,
} from "./log.ts";
export { type DecisionLogger, loggerSink } from "./logger-sink.ts";
export type { DecisionLogEntry } from "./record.ts";
export type { DecisionLogProblem } from "./report.ts";
export { decisionLogSchema } from "./schema.ts";
export {
	createShadow,
	type Shadow,
	type ShadowDifference,
	type ShadowOptions,
	type ShadowStats,
} from "./shadow.ts";
export type { DecisionLogSink } from "./sink.ts";
