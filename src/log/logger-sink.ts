import type { DecisionLogSink } from "./sink.ts";

/** A logger such as pino, or Fastify's. */
export interface DecisionLogger {
	info(facts: object, message: string): void;
}

/** Each record as one line of a logger, in the form of OPA's console log. */
export function loggerSink(logger: DecisionLogger): DecisionLogSink {
	if (typeof logger?.info !== "function") throw new TypeError("loggerSink: a logger has `info`");
	return {
		name: "logger",
		write(entries) {
			let taken = 0;
			try {
				for (const { record } of entries) {
					logger.info({ type: "openpolicyagent.org/decision_logs", ...record }, "Decision Log");
					taken += 1;
				}
			} catch (error) {
				if (taken === 0) throw error;
			}
			return taken;
		},
	};
}
