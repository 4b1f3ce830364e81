import type { DecisionRecord } from "../resume/ground.ts";
import type { EndpointLog } from "./endpoint.ts";

/** A logger such as pino, or Fastify's: an object with what is to be known, and a sentence. */
export interface Logger {
	debug(facts: object, message: string): void;
	info(facts: object, message: string): void;
	warn(facts: object, message: string): void;
	error(facts: object, message: string): void;
	/** Whether lines of a level are written, as pino has it; absent: they are. */
	isLevelEnabled?(level: "debug"): boolean;
}

/** Refusals and faults to the console; what proceeds is not worth a line. */
export const consoleLogger: Logger = {
	debug() {},
	info: (facts, message) => console.info(message, JSON.stringify(facts)),
	warn: (facts, message) => console.warn(message, JSON.stringify(facts)),
	error: (facts, message) => console.error(message, facts),
	isLevelEnabled: () => false,
};

/** Writes what the guard does to a logger: one line for each refusal, no secret in it. */
export function logTo(logger: Logger): EndpointLog {
	return {
		decision: (record) => logDecision(logger, record),
		token: ({ code, reason }) =>
			logger.info({ mcp: { outcome: "reauthenticate", code, reason } }, `mcp ${code}`),
		fault: ({ moment, reason, cause }) => logger.error({ err: cause, moment, reason }, "mcp policy_fault"),
		revision: (revision) => logger.info({ mcp: { revision } }, "mcp policy reloaded"),
		error: (err, what) => logger.error({ err }, `mcp ${what}`),
	};
}

function logDecision(logger: Logger, { decision, ...facts }: DecisionRecord): void {
	const { outcome, code, drift } = decision;
	// Most decisions, and most hosts do not want to hear of them.
	if (outcome === "proceed" && logger.isLevelEnabled?.("debug") === false) return;
	const held = "held" in decision ? decision.held : undefined;
	const delivered = "deliver" in decision && decision.deliver > 0 ? { deliver: decision.deliver } : undefined;
	const entry = {
		mcp: legible({
			...facts,
			outcome,
			code,
			...delivered,
			...(drift.length > 0 && { drift }),
			...(held && { held }),
		}),
	};
	if (outcome === "proceed") logger.debug(entry, "mcp proceed");
	else if (decision.session === "end" || code === "principal_drift")
		logger.warn(entry, `mcp ${outcome}: ${code}`);
	else logger.info(entry, `mcp ${outcome}: ${code}`);
}

const LONGEST_TEXT = 256;
// Control and format characters, surrogates without their half, separators of lines: what may break a line, colour a
// terminal or turn text around.
const ILLEGIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const VISIBLE_ASCII = /^[\x20-\x7e]*$/;

/** Names of tools and methods, ids and cursors are what a client has sent. */
function legible<T>(value: T): T {
	if (typeof value === "string") return legibleText(value) as T;
	if (typeof value !== "object" || value === null) return value;
	if (Array.isArray(value)) return value.map(legible) as T;
	return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, legible(member)])) as T;
}

function legibleText(text: string): string {
	if (text.length <= LONGEST_TEXT && VISIBLE_ASCII.test(text)) return text;
	const short = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
	return short.replace(ILLEGIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
