import { randomBytes } from "node:crypto";
import type { Claims } from "../claims.ts";
import type { EventLog } from "../events/log.ts";
import type { SessionInput } from "../facts.ts";
import type { RequestFacts } from "../generated/types.ts";
import type { Moment, ResumeGuard } from "../guard.ts";

import { digest, sessionKey } from "../sessions/key.ts";
import type { SessionKey, SessionRecord, SessionStore } from "../sessions/store.ts";
import { isPlausibleId, type RequestHeaders } from "../wire/headers.ts";
import type { AnyDecision } from "../wire/refusal.ts";

/** What every request is served from. */
export interface Ground {
	readonly guard: ResumeGuard;
	readonly sessions: SessionStore;
	readonly events: EventLog;
	/** The URL of the protected-resource metadata, for challenges. */
	readonly resourceMetadata: string | undefined;
	/** The host has no sessions: every POST is decided by itself. */
	readonly stateless: boolean;
	/** tools/list shows only what the token may call. */
	readonly listCoveredTools: boolean;
	/** Hears of every decision; must not throw. */
	readonly observe: (record: DecisionRecord) => void;
	/** Hears of what has failed while nobody waited for it; must not throw. */
	readonly report: (error: unknown, what: string) => void;
}

/** A decision with what an operator needs to understand it, and no secret. */
export interface DecisionRecord {
	readonly moment: Moment;
	readonly decision: AnyDecision;
	/** Hash of the session id. */
	readonly session?: SessionKey | undefined;
	readonly tool?: string | undefined;
	readonly rpc?: string | undefined;
	/** resume: the cursor, and where it stands. */
	readonly cursor?: string;
	readonly position?: string;
}

/** One request, authenticated: what a host has read of it. */
export interface Incoming {
	readonly method: RequestFacts["method"];
	/** The transport that the request is of. */
	readonly transport: RequestFacts["transport"];
	readonly headers: RequestHeaders;
	/** The session id; `undefined`: none. */
	readonly sessionId: string | undefined;
	/** Verified claims of its token; `undefined`: no token. */
	readonly presented: Claims | undefined;
}

/** The session that a request names. */
export interface Found {
	/** Hash of the id, where one was given. */
	readonly key: SessionKey | undefined;
	readonly record: SessionRecord | undefined;
	/** The revision in force when the request came: what is decided about it is by this one or a later one. */
	readonly revision: string;
	/** What the request and the session are to the guard. */
	readonly facts: {
		readonly request: RequestFacts;
		readonly session?: SessionInput;
		readonly presented?: Claims;
	};
}

/** Looks for the session that the request names. */
export async function findSession(ground: Ground, incoming: Incoming): Promise<Found> {
	const { method, transport, sessionId, presented } = incoming;
	const known = sessionId !== undefined && isPlausibleId(sessionId);
	const key = known ? sessionKey(sessionId) : undefined;
	const record = key === undefined ? undefined : await ground.sessions.find(key);
	const session = sessionId === undefined ? "none" : "unknown";
	return foundOf(ground, { method, transport, session }, presented, key, record);
}

/** What a request and its session are to the guard. */
export function foundOf(
	{ guard }: Ground,
	request: RequestFacts,
	presented: Claims | undefined,
	key: SessionKey | undefined,
	record: SessionRecord | undefined,
): Found {
	const session =
		record === undefined
			? undefined
			: { binding: record.binding, transport: record.transport, opened_at: record.opened_at };
	return {
		key,
		record,
		revision: guard.revision,
		facts: {
			request: session === undefined ? request : { ...request, session: "known" },
			...(session !== undefined && { session }),
			...(presented !== undefined && { presented }),
		},
	};
}

/** Ends a session: its streams are closed, its events dropped, and its id is known no more. */
export async function endSession(ground: Ground, key: SessionKey): Promise<void> {
	await ground.sessions.end(key);
	await ground.events.drop(key);
}

/** Makes a decision known, and ends the session where it says so. */
export async function settle(ground: Ground, record: DecisionRecord): Promise<void> {
	ground.observe(record);
	if (record.decision.session === "end" && record.session !== undefined)
		await endSession(ground, record.session);
}

/** Does what nobody waits for: a store that fails then must not end the process. */
export function inBackground({ report }: Ground, work: Promise<unknown>): void {
	work.catch((error) => report(error, "a store has failed"));
}

/** The session's own GET stream, under a name that no other session has. */
export function getStreamOf(key: SessionKey): string {
	return digest(`GET ${key}`).slice(0, 16);
}

/** The holder of a stream whose connection is to end cleanly; no name of `newName` is the same. */
export const NOBODY = ".";

const ofThisProcess = randomBytes(9).toString("base64url");
let names = 0;

/** A name for a new stream, or for a connection, that nothing else has, on any machine. */
export function newName(): string {
	names += 1;
	return `${ofThisProcess}${names.toString(36)}`;
}
