import { LRUCache } from "lru-cache";
import { createListeners } from "../listeners.ts";
import { digest, principalOf } from "./key.ts";
import { LONGEST_WAIT, withLimits } from "./limits.ts";
import type { SessionKey, SessionMatch, SessionRecord, SessionStore } from "./store.ts";

/** What the store may hold. */
export interface SessionLimits {
	/** Sessions in all. Default 10,000. */
	readonly sessions: number;
	/** Sessions of one principal (`iss`, `sub`, `client_id`); all anonymous sessions are one. Default 1,000. */
	readonly sessionsPerPrincipal: number;
	/** Seconds after its last use at which a session ends, at most 24 days. Default 3,600. */
	readonly idle: number;
	/** Ended sessions whose keys are remembered, for a day; the oldest are forgotten first. Default 100,000. */
	readonly ended: number;
}

const DEFAULTS: SessionLimits = {
	sessions: 10_000,
	sessionsPerPrincipal: 1_000,
	idle: 3_600,
	ended: 100_000,
};
const ENDED_FOR = 24 * 60 * 60 * 1_000;
const SLOTS_PER_SESSION = 100;
const CLAIMS = ["iss", "sub", "client_id"] as const satisfies readonly (keyof SessionMatch)[];

interface Entry {
	readonly record: SessionRecord;
	readonly principal: string;
	slots?: LRUCache<string, string>;
}

// lru-cache would keep the `performance` of the moment at which it was imported.
const perf = { now: () => performance.now() };

/**
 * The session table of one process. A session over a limit is refused, no other one is ended for it. Idle
 * sessions end by themselves, also when nobody asks for them; their timers keep no process alive.
 */
export function createMemorySessionStore(limits?: Partial<SessionLimits>): SessionStore {
	const { sessions, sessionsPerPrincipal, idle, ended: endedKeys } = withLimits(DEFAULTS, limits);
	if (idle > LONGEST_WAIT) throw new TypeError(`the limit idle must be at most ${LONGEST_WAIT} seconds`);

	const listeners = createListeners<[SessionKey]>();
	const counts = new Map<string, number>();
	const ended = new LRUCache<SessionKey, true>({ max: endedKeys, ttl: ENDED_FOR, perf });
	const live = new LRUCache<SessionKey, Entry>({
		max: sessions,
		ttl: idle * 1_000,
		ttlAutopurge: true,
		updateAgeOnGet: true,
		perf,
		disposeAfter({ principal }, key) {
			const left = (counts.get(principal) ?? 0) - 1;
			if (left > 0) counts.set(principal, left);
			else counts.delete(principal);
			ended.set(key, true);
			listeners.tell(key);
		},
	});

	return {
		async open(record) {
			// `get`, not `has`: an entry that is past its time has to end before the second question is put.
			if (live.get(record.key, { updateAgeOnGet: false }) || ended.has(record.key)) return "exists";
			const principal = principalOf(record.binding);
			const count = counts.get(principal) ?? 0;
			if (live.size >= sessions || count >= sessionsPerPrincipal) return "quota_exceeded";
			counts.set(principal, count + 1);
			live.set(record.key, { record, principal });
			return "opened";
		},

		async find(key) {
			return live.get(key)?.record;
		},

		async end(key) {
			return live.has(key) && live.delete(key);
		},

		async endMatching(match) {
			const claims = givenClaims(match);
			const keys: SessionKey[] = [];
			for (const [key, { record }] of live.entries()) {
				if (claims.every(([name, value]) => record.binding[name] === value)) keys.push(key);
			}
			for (const key of keys) live.delete(key);
			return keys;
		},

		onEnd: listeners.add,

		async repeated(key, stream, value, ttl) {
			const entry = live.get(key);
			if (!entry) return false;
			entry.slots ??= new LRUCache({ max: SLOTS_PER_SESSION, perf });
			// A value can be as long as a token's claims: only its digest is kept.
			const kept = digest(value);
			if (entry.slots.get(stream) === kept) return true;
			entry.slots.set(stream, kept, { ttl: ttl * 1_000 });
			return false;
		},
	};
}

/** Misuse must not end more sessions than were meant, so a claim that is misspelt is not passed over. */
function givenClaims(match: SessionMatch): [(typeof CLAIMS)[number], string][] {
	for (const name of Object.keys(match)) {
		if (!CLAIMS.some((claim) => claim === name)) {
			throw new TypeError(`sessions cannot be matched by ${JSON.stringify(name)}`);
		}
	}
	const claims = CLAIMS.flatMap((name): [typeof name, string][] => {
		const value: unknown = match[name];
		if (value === undefined) return [];
		if (typeof value !== "string") throw new TypeError(`${name} must be a string`);
		return [[name, value]];
	});
	if (claims.length === 0) throw new TypeError(`give at least one of ${CLAIMS.join(", ")}`);
	return claims;
}
