import { hash } from "node:crypto";
import type { Binding } from "../generated/types.ts";
import type { SessionKey } from "./store.ts";

/** SHA-256, base64url. */
export function digest(text: string): string {
	return hash("sha256", text, "base64url");
}

/** What stores and logs know a session by: its id is as good as a bearer token and stays out of them. */
export function sessionKey(id: string): SessionKey {
	return digest(id);
}

/**
 * Who pays for a session and its events: one issuer, subject and client (RFC 9068 section 2.2). All
 * anonymous sessions are one principal.
 */
export function principalOf(binding: Binding): string {
	if (binding.anonymous) return "anonymous";
	return JSON.stringify([binding.iss ?? null, binding.sub ?? null, binding.client_id ?? null]);
}
