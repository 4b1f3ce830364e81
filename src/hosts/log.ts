import type { DecisionRecord } from "../resume/ground.ts";
import type { EndpointLog } from "./endpoint.ts";

/** A logger such as pino, or Fastify's: an object with what is to be known, and a sentence. */
export interface Logger {
	debug(facts: object, message: string): void;
	info(facts: object, message: string): void;
	warn(facts: object, message: string): void;
	error(facts: object, message: string): void;
}

/** Refusals and faults to the console; what proceeds is not worth a line. */
export const consoleLogger: Logger = {
	debug() {},
	info: (facts, message) => console.info(message, JSON.stringify(facts)),
	warn: (facts, message) => console.warn(message, JSON.stringify(facts)),
	error: (facts, message) => console.error(message, facts),
};

/** Writes what the guard does to a logger: one line for each refusal, no secret in it. */
export function logTo(logger: Logger): EndpointLog {
	return {
		decision: (record) => logDecision(logger, record),
		token: ({ code, reason }) =>
			logger.info({ mcp: { outcome: "reauthenticate", code, reason } }, `mcp ${code}`),
		fault: ({ moment, reason, cause }) => logger.error({ err: cause, moment, reason }, "mcp policy_fault"),
		error: (err, what) => logger.error({ err }, `mcp ${what}`),
	};
}

function logDecision(logger: Logger, { decision, ...facts }: DecisionRecord): void {
	const { outcome, code, drift } = decision;
	const held = "held" in decision ? decision.held : undefined;
	const delivered = "deliver" in decision && decision.deliver > 0 ? { deliver: decision.deliver } : undefined;
	const entry = {
		mcp: { ...facts, outcome, code, ...delivered, ...(drift.length > 0 && { drift }), ...(held && { held }) },
	};
	if (outcome === "proceed") logger.debug(entry, "mcp proceed");
	else if (decision.session === "end" || code === "principal_drift")
		logger.warn(entry, `mcp ${outcome}: ${code}`);
	else logger.info(entry, `mcp ${outcome}: ${code}`);
}
