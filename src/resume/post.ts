import type { Call } from "../events/log.ts";
import type { CallDecision, Label, RequestId, SessionDecision } from "../generated/types.ts";
import type { SessionKey } from "../sessions/store.ts";
import type { WholeAnswer } from "../wire/answer.ts";
import { type ClientMessage, isInitialize, readMessage } from "../wire/messages.ts";
import { errorAnswer, refusalAnswer } from "../wire/refusal.ts";
import { endCall } from "./calls.ts";
import { type Found, findSession, type Ground, type Incoming, newName, settle } from "./ground.ts";
import {
	coveredBy,
	createPost,
	internLabel,
	type LivePost,
	type LiveSession,
	type LiveSessions,
	withNeeds,
} from "./live.ts";
import { openSession } from "./open.ts";

/** A POST is answered here, or goes on to the MCP server. */
export type Admission = { readonly answer: WholeAnswer } | Admitted;

export interface Admitted {
	/** The body to pass on: what was decided about, and nothing else. */
	readonly body: unknown;
	readonly found: Found;
	/** `undefined`: a request without a session, for a host that has none. */
	readonly session: LiveSession | undefined;
	/** `undefined`: there is no request in it, so nothing will be emitted for it. */
	readonly post: LivePost | undefined;
	/** This is the initialize that opened `session`. */
	readonly opens: boolean;
}

const INVALID_REQUEST = -32600;
/** As the MCP SDKs have it. */
const MAX_BATCH = 100;

type Judged = {
	readonly decision: SessionDecision | CallDecision;
	readonly tool?: string;
	readonly rpc?: string;
};

/**
 * Decides about a POST before the MCP server sees it. A batch is decided whole: the first message that fails names the
 * answer. Answers and cancellations that refer to nothing are accepted and dropped.
 */
export async function admitPost(
	ground: Ground,
	lives: LiveSessions,
	incoming: Incoming,
	body: unknown,
): Promise<Admission> {
	const values: unknown[] = Array.isArray(body) ? body : [body];
	const messages = values.map(readMessage);
	const readable = messages.filter((message) => message !== undefined);
	const initializes = isInitialize(body);
	const found = await findSession(ground, incoming);
	const isReadable = readable.length === messages.length && values.length > 0 && values.length <= MAX_BATCH;
	if (!isReadable || (initializes && readable.length > 1)) return invalidRequest(ground, found);

	const known = found.record === undefined ? undefined : found.key;
	const calls: Call[] = [];
	const lists = new Set<RequestId>();
	const passed: unknown[] = [];
	const references: ClientMessage[] = [];

	for (const [index, message] of readable.entries()) {
		const judged = await judge(ground, found, known, message, calls);
		if (judged === undefined) continue;
		const { decision, tool, rpc } = judged;
		const record = { moment: momentOf(message), decision, session: found.key, tool, rpc };
		if (decision.outcome !== "proceed") {
			await settle(ground, record);
			return { answer: refusalAnswer(decision, ground.resourceMetadata) };
		}
		ground.observe(record);
		if (message.kind === "session" || message.kind === "call") {
			calls.push({ request_id: message.request_id, label: decision.label });
			if (ground.listCoveredTools && message.rpc === "tools/list") lists.add(message.request_id);
		} else {
			references.push(message);
		}
		passed.push(values[index]);
	}
	if (passed.length === 0) return { answer: { status: 202, headers: {}, body: "" } };

	const passedBody = Array.isArray(body) ? passed : passed[0];
	if (ground.stateless && found.facts.request.session === "none") {
		return { body: passedBody, found, session: undefined, post: undefined, opens: false };
	}
	if (initializes && found.facts.request.session === "none") {
		return initialize(ground, lives, found, calls, passedBody);
	}
	if (known === undefined || incoming.sessionId === undefined) return sessionRequired(ground);
	const session = lives.of(known, incoming.sessionId);
	if (calls.length === 0) {
		await settleReferences(ground, session, references);
		return { body: passedBody, found, session, post: undefined, opens: false };
	}
	// HTTP+SSE has one stream for everything.
	const stream = incoming.transport === "sse" ? session.getStream : newName();
	const own = calls.map(({ request_id, label }) => ({ request_id, label: internLabel(session, label) }));
	const covered = coveredBy(ground, session, incoming.presented);
	if ((await ground.events.openStream(known, stream, own)) === "in_use") {
		// Another request took the id in the meantime.
		const decision = ground.guard.session({ ...withFacts(found, { id: "in_use" }) });
		await settle(ground, { moment: "session", decision, session: known });
		return { answer: refusal(ground, decision) };
	}
	if (references.length > 0) await settleReferences(ground, session, references);
	return {
		body: passedBody,
		found,
		session,
		post: addPost(session, createPost(ground, found, stream, own, { lists, covered })),
		opens: false,
	};
}

// `undefined`: it refers to nothing, and is dropped.
async function judge(
	ground: Ground,
	found: Found,
	known: SessionKey | undefined,
	message: ClientMessage,
	before: readonly Call[],
): Promise<Judged | undefined> {
	const { guard, events } = ground;
	switch (message.kind) {
		case "notification":
			return { decision: guard.session({ ...found.facts, rpc: message.rpc }), rpc: message.rpc };
		case "session": {
			const { rpc } = message;
			const facts = withFacts(found, { id: await idOf(ground, known, message.request_id, before) });
			return { decision: guard.session({ ...facts, rpc }), rpc };
		}
		case "call": {
			const id = await idOf(ground, known, message.request_id, before);
			const quota = known === undefined ? undefined : await events.quota(known);
			const subject = message.tool !== undefined ? { tool: message.tool } : { rpc: message.rpc ?? "" };
			return { decision: guard.call({ ...withFacts(found, { id, quota }), ...subject }), ...subject };
		}
		default: {
			const reference = known === undefined ? undefined : await referenceOf(ground, known, message);
			// Whether it refers to something is for the session's principal to know.
			if (reference === undefined) {
				const decision = guard.session(found.facts);
				return decision.outcome === "proceed" ? undefined : { decision };
			}
			const { tool, rpc } = reference;
			return {
				decision: guard.call({ ...found.facts, reference }),
				...(tool !== undefined && { tool }),
				...(rpc !== undefined && { rpc }),
			};
		}
	}
}

function momentOf({ kind }: ClientMessage): "session" | "call" {
	return kind === "session" || kind === "notification" ? "session" : "call";
}

async function idOf(
	{ events }: Ground,
	known: SessionKey | undefined,
	id: RequestId,
	before: readonly Call[],
): Promise<"free" | "in_use" | undefined> {
	if (before.some(({ request_id }) => request_id === id)) return "in_use";
	if (known === undefined) return undefined;
	return (await events.openCall(known, id)) === undefined ? "free" : "in_use";
}

function withFacts(
	{ facts }: Found,
	further: { id?: "free" | "in_use" | undefined; quota?: "left" | "exceeded" | undefined },
): Found["facts"] {
	const { id, quota } = further;
	return {
		...facts,
		request: { ...facts.request, ...(id !== undefined && { id }), ...(quota !== undefined && { quota }) },
	};
}

type Referring = Extract<ClientMessage, { kind: "cancel" | "answer" | "progress" }>;

async function referenceOf(
	{ events }: Ground,
	key: SessionKey,
	message: Referring,
): Promise<Label | undefined> {
	return message.kind === "cancel"
		? (await events.openCall(key, message.request_id))?.label
		: events.reference(key, message.reference);
}

async function settleReferences(
	{ events }: Ground,
	session: LiveSession,
	messages: readonly ClientMessage[],
): Promise<void> {
	const { key } = session;
	for (const message of messages) {
		if (message.kind === "cancel") {
			await events.closeCall(key, message.request_id);
			endCall(session, message.request_id);
		}
		if (message.kind === "answer") await events.forget(key, message.reference);
	}
}

async function initialize(
	ground: Ground,
	lives: LiveSessions,
	found: Found,
	calls: readonly Call[],
	body: unknown,
): Promise<Admission> {
	const opened = await openSession(ground, lives, found, "streamable-http");
	if (opened === undefined) {
		const decision = ground.guard.session({ ...withFacts(found, { quota: "exceeded" }), rpc: "initialize" });
		await settle(ground, { moment: "session", decision, rpc: "initialize" });
		return { answer: refusal(ground, decision) };
	}
	const { session } = opened;
	const stream = newName();
	await ground.events.openStream(session.key, stream, calls);
	const post = addPost(session, createPost(ground, opened.found, stream, calls));
	return { body, found: opened.found, session, post, opens: true };
}

function addPost(session: LiveSession, post: LivePost): LivePost {
	session.posts.add(post);
	for (const { label } of post.calls) session.everything = withNeeds(session.everything, label);
	return post;
}

function refusal(ground: Ground, decision: SessionDecision): WholeAnswer {
	if (decision.outcome === "proceed") throw new Error("the policy lets in what cannot be served");
	return refusalAnswer(decision, ground.resourceMetadata);
}

// The policy lets a POST without a session through, for hosts that have none.
async function sessionRequired(ground: Ground): Promise<Admission> {
	const code = "session_required";
	const status = ground.guard.data.status[code] ?? 400;
	const decision: SessionDecision = { outcome: "refuse", code, drift: [], session: "keep", status };
	await settle(ground, { moment: "session", decision });
	return { answer: refusalAnswer(decision, ground.resourceMetadata) };
}

// Even that a body is no good is said only to whom the session would be served.
async function invalidRequest(ground: Ground, found: Found): Promise<Admission> {
	const decision = ground.guard.session(found.facts);
	await settle(ground, { moment: "session", decision, session: found.key });
	if (decision.outcome !== "proceed") return { answer: refusalAnswer(decision, ground.resourceMetadata) };
	return { answer: errorAnswer(400, { code: INVALID_REQUEST, message: "Invalid Request" }) };
}
