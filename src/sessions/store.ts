import type { Binding, SessionFacts } from "../generated/types.ts";

/** SHA-256 of a session id, base64url. The id itself is as good as a bearer token and is kept nowhere. */
export type SessionKey = string;

/** What a store keeps of a session. */
export interface SessionRecord {
	readonly key: SessionKey;
	/** What the session was opened with. */
	readonly binding: Binding;
	/** The transport it was opened on. */
	readonly transport: SessionFacts["transport"];
	/** NumericDate, seconds. */
	readonly opened_at: number;
}

/** Claims that name the sessions to end, for logout and revocation: each one given must be equal. */
export type SessionMatch = Partial<Pick<Binding, "iss" | "sub" | "client_id">>;

/**
 * The session table. Asynchronous, so that a store that several machines share can stand behind it.
 *
 * A key that was opened once is not opened again, also after its session has ended, for as long as the store
 * remembers it (a day at least, unless it has many to remember).
 */
export interface SessionStore {
	/**
	 * Opens a session. `quota_exceeded`: its principal, or the store, has as many as it may have;
	 * `exists`: the key is in use or has ended.
	 */
	open(record: SessionRecord): Promise<"opened" | "exists" | "quota_exceeded">;
	/** The session, which counts as its use; `undefined`: never opened, ended, or idle for too long. */
	find(key: SessionKey): Promise<SessionRecord | undefined>;
	/** Ends a session; `false`: there was none. Listeners hear of it before this resolves. */
	end(key: SessionKey): Promise<boolean>;
	/**
	 * Ends every session that matches and resolves with their keys. Anonymous sessions match nothing.
	 * A `TypeError` if no claim is given, or one that a session cannot be matched by.
	 */
	endMatching(match: SessionMatch): Promise<SessionKey[]>;
	/**
	 * Hears of each session that ends, for whatever reason; returns how to stop listening. A listener that
	 * throws keeps no other from hearing.
	 */
	onEnd(listener: (key: SessionKey) => void): () => void;
	/**
	 * One slot for each stream, for the staged answer of a refused resume: whether `value` is what the
	 * slot holds already; if not, it is put there for `ttl` seconds. Slots end with their session.
	 */
	repeated(key: SessionKey, stream: string, value: string, ttl: number): Promise<boolean>;
}
