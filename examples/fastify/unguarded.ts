import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import type { EventStore, McpServer } from "@modelcontextprotocol/server";
import type { FastifyInstance } from "fastify";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { bearerToken, createMemoryEventLog, type EventLog, type PolicyData } from "mcp-resume-guard";
import { z } from "zod";

/** An event that a host has stored for its client. */
export interface EmittedEvent {
	readonly id: string;
	/** The tool that it belongs to, where there is one. */
	readonly tool: string | undefined;
	/** A JSON-RPC message. */
	readonly message: object;
}

type Audiences = readonly string[];
/** Whether a token with these audiences may use the tool; events of no tool are for everyone in the session. */
type MayUse = (audiences: Audiences, tool: string | undefined) => boolean;

/**
 * The same host without the guard, for comparison, as a careful author writes it. Every token is verified, every call
 * needs a token that covers its tool, events are kept in order, and a replay leaves out what its token does not cover.
 *
 * Each part behaves correctly, and still: what a replay leaves out is lost without a word, since to the client a stream
 * that ends has told everything; and nothing compares the token with the one that the session was opened with.
 */
export async function addUnguardedRoutes(
	app: FastifyInstance,
	{ issuer, jwks }: { issuer: string; jwks: string },
	data: PolicyData,
	createServer: () => McpServer,
	onEvent: (event: EmittedEvent) => void,
): Promise<void> {
	const keys = createRemoteJWKSet(new URL(jwks));
	const resources = [...data.resources, ...Object.values(data.tools ?? {}).flatMap(({ aud }) => aud)];
	const good = { issuer, audience: resources, typ: "at+jwt" };
	const mayUse = createMayUse(data);
	const presented = new AsyncLocalStorage<Audiences>();
	const log = createMemoryEventLog();
	const sessions = new Map<string, { transport: NodeStreamableHTTPServerTransport; calls: Calls }>();

	app.route({
		method: ["GET", "POST", "DELETE"],
		url: "/mcp",
		async handler(request, reply) {
			const token = bearerToken(request.headers.authorization);
			const verified = token && (await jwtVerify(token, keys, good).catch(() => undefined));
			if (!verified) return reply.code(401).send();
			const audiences = [verified.payload.aud].flat().map(String);
			const id = request.headers["mcp-session-id"];
			const session = sessions.get(String(id)) ?? (id === undefined ? await open() : undefined);
			if (session === undefined) return reply.code(404).send();
			const calls = readCalls(request.body);
			if (!calls.every(({ tool }) => mayUse(audiences, tool))) return reply.code(403).send();
			for (const { names, tool } of calls) for (const name of names) session.calls.set(name, tool);
			reply.hijack();
			await presented.run(audiences, () =>
				session.transport.handleRequest(request.raw, reply.raw, request.body),
			);
		},
	});

	async function open() {
		const calls: Calls = new Map();
		const id = randomUUID();
		await log.open(id, "everyone");
		const mayHave = (tool: string | undefined) => mayUse(presented.getStore() ?? [], tool);
		const transport = new NodeStreamableHTTPServerTransport({
			sessionIdGenerator: () => id,
			eventStore: createFilteringStore(log, id, calls, mayHave, onEvent),
			onsessioninitialized: () => void sessions.set(id, session),
		});
		const session = { transport, calls };
		await createServer().connect(transport);
		return session;
	}
}

/** What each request was for, by its id and its progress token, type and all. */
type Calls = Map<string | number, string>;

/** Keeps events in order, and leaves out of a replay what the token of the request at hand may not have. */
function createFilteringStore(
	log: EventLog,
	session: string,
	calls: Calls,
	mayHave: (tool: string | undefined) => boolean,
	onEvent: (event: EmittedEvent) => void,
): EventStore {
	return {
		async storeEvent(stream, message) {
			// No message, but what gives the client its first id.
			if (Object.keys(message).length === 0) return log.start(session, stream);
			const tool = toolOf(message, calls);
			const label = { ...(tool !== undefined && { tool }), aud: [], scope: [] };
			const answered = response.safeParse(message).data?.id;
			// The log lets go of a stream when its call is answered.
			if (answered !== undefined) await log.openStream(session, stream, [{ request_id: answered, label }]);
			const ends = answered !== undefined && { request_id: answered, terminal: true };
			const id = await log.append(session, stream, { message: JSON.stringify(message), label, ...ends });
			// The transport writes it now, if anybody listens.
			await log.markWritten(session, id);
			onEvent({ id, tool, message });
			return id;
		},
		async replayEventsAfter(lastEventId, { send }) {
			const location = await log.locate(session, lastEventId);
			const stream = lastEventId.slice(0, lastEventId.lastIndexOf(".", lastEventId.lastIndexOf(".") - 1));
			if (location.position !== "retained") return stream;
			const { events } = await log.read(session, stream, lastEventId, location.pending.length);
			for (const { id, label, message } of events) {
				if (mayHave(label.tool)) await send(id, JSON.parse(message) as never);
			}
			return stream;
		},
	};
}

const name = z.union([z.string(), z.number()]);
const call = z.object({
	id: name,
	params: z.object({ name: z.string(), _meta: z.object({ progressToken: name }).optional() }),
});
const response = z.object({ id: name, method: z.undefined().optional() });
const emitted = z.object({ id: name.optional(), params: z.object({ progressToken: name }).optional() });

function readCalls(body: unknown): { tool: string; names: (string | number)[] }[] {
	return [body].flat().flatMap((message) => {
		const { success, data } = call.safeParse(message);
		if (!success) return [];
		const { id, params } = data;
		return [{ tool: params.name, names: [id, ...(params._meta ? [params._meta.progressToken] : [])] }];
	});
}

function toolOf(message: object, calls: Calls): string | undefined {
	const { id, params } = emitted.safeParse(message).data ?? {};
	return calls.get(id ?? params?.progressToken ?? "");
}

function createMayUse({ tools = {}, coverage = {} }: PolicyData): MayUse {
	const stands = (entry: string, resource: string) =>
		entry.endsWith("/*") ? resource.startsWith(entry.slice(0, -1)) : entry === resource;
	return (audiences, tool) =>
		(tools[tool ?? ""]?.aud ?? []).every((resource) =>
			audiences.some(
				(audience) => audience === resource || coverage[audience]?.some((entry) => stands(entry, resource)),
			),
		);
}
