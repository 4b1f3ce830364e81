import { randomUUID } from "node:crypto";
import { type Claims, readBinding } from "../claims.ts";
import { deepFreeze } from "../frozen.ts";
import type { Binding, SessionFacts } from "../generated/types.ts";
import { principalOf, sessionKey } from "../sessions/key.ts";
import { type Found, foundOf, type Ground } from "./ground.ts";
import type { LiveSession, LiveSessions } from "./live.ts";

/**
 * Opens a session under a new id, with the claims of the request as its binding, and resolves with what the request is
 * from then on; `undefined`: its principal, or the store, has as many as it may have.
 */
export async function openSession(
	ground: Ground,
	lives: LiveSessions,
	{ facts }: Found,
	transport: SessionFacts["transport"],
): Promise<{ session: LiveSession; found: Found } | undefined> {
	const id = randomUUID();
	const key = sessionKey(id);
	const binding = bindingOf(ground, facts.presented);
	const record = { key, binding, transport, opened_at: Date.now() / 1000 };
	if ((await ground.sessions.open(record)) !== "opened") return undefined;
	await ground.events.open(key, principalOf(binding));
	return { session: lives.of(key, id), found: foundOf(ground, facts.request, facts.presented, key, record) };
}

// The decision has looked at these claims already.
function bindingOf({ guard }: Ground, presented: Claims | undefined): Binding {
	const read = readBinding(presented ?? { anonymous: true }, guard.data.identity_claims);
	if ("problem" in read) throw new Error(`a session cannot be opened under such claims: ${read.problem}`);
	return deepFreeze(read.value);
}
