import { z } from "zod";
import { assertOptions } from "../misuse.ts";

const given = z.unknown().optional();
const path = z.string().startsWith("/");
const listener = z.custom((value) => typeof value === "function", "must be a function");

/** An object with these methods: a store or a logger may be an instance of a class. */
function withMethods(...names: string[]) {
	return z.custom(
		(value) => names.every((name) => typeof Object(value)[name] === "function"),
		`must have the methods ${names.join(", ")}`,
	);
}

const shared = {
	// The guard looks at these, and the token verifier at its own.
	data: given,
	policy: given,
	bundle: given,
	watch: given,
	onDecision: given,
	tokens: given,
	allowedOrigins: z.array(z.string()).optional(),
	allowedHosts: z.array(z.string()).optional(),
	authorizationServers: z.array(z.string()).optional(),
	sessions: withMethods("open", "find", "end", "endMatching", "onEnd", "repeated").optional(),
	events: withMethods(
		...["open", "drop", "quota", "openStream", "openCall", "closeCall", "reference", "forget", "append"],
		...["markWritten", "acknowledge", "unacknowledged", "locate", "read", "start"],
		...["hold", "release", "holder", "watch"],
	).optional(),
	listCoveredTools: z.boolean().optional(),
	stateless: z.boolean().optional(),
	connect: listener.optional(),
	path: path.optional(),
};

const ofLogger = { logger: withMethods("debug", "info", "warn", "error").optional() };

const ofFastify = z.strictObject({
	...shared,
	sse: z.strictObject({ path: path.optional(), messages: path.optional() }).optional(),
	// What Fastify itself takes of a plugin's options.
	prefix: given,
	logLevel: given,
	logSerializers: given,
});
const ofOthers = z.strictObject({ ...shared, ...ofLogger });

/** @throws {TypeError} for wrong options of the Fastify plugin */
export function assertFastifyOptions(options: unknown): void {
	assertOptions(ofFastify, options);
	const { sse, connect } = Object(options);
	if (sse !== undefined && connect === undefined) throw new TypeError("`sse` needs `connect`");
}

/** @throws {TypeError} for wrong options of the guard of another host */
export function assertHostOptions(options: unknown): void {
	assertOptions(ofOthers, options);
}

/** @throws {TypeError} unless POSTs go either to an MCP server that the guard connects, or to a handler of the host's */
export function assertHandler(handler: unknown, connect: unknown): void {
	if (handler === undefined && connect === undefined)
		throw new TypeError("give a handler, or the option `connect`");
	if (handler !== undefined && connect !== undefined)
		throw new TypeError("with `connect` the guard answers POSTs itself: there is nothing for a handler");
}
