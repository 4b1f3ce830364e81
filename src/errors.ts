/**
 * Why the guard could not do what it was asked. Decisions are never errors: a refusal is an answer.
 *
 * - `policy_invalid`: the Wasm is not a policy that this package can evaluate (ABI, entrypoints, memory)
 * - `data_invalid`: the policy data breaks `schemas/data.json`; the message has the pointer to the place
 * - `file_unreadable`: a path that was given cannot be read
 * - `token_invalid`: the access token is not good; `cause` says why, the message is safe to show (401, `invalid_token`)
 * - `token_expired`: the access token is good but for its `exp` (401, `invalid_token`)
 * - `token_keys_unavailable`: the keys to verify tokens with could not be fetched, so that it says nothing about
 *   the token (503)
 * - `dpop_proof_invalid`: the DPoP proof is not good for this request and token; the message is safe to show (401,
 *   `invalid_dpop_proof`)
 * - `dpop_nonce_required`: the DPoP proof needs a nonce, and `dpopNonce` is a good one (401, `use_dpop_nonce`)
 * - `authorization_malformed`: the Authorization header is not one well-formed credential (400, `invalid_request`)
 * - `session_ended`: an append to a session that has ended
 * - `event_too_large`: an event that is larger than the event log may hold
 */
export type ResumeGuardErrorCode =
	| "policy_invalid"
	| "data_invalid"
	| "file_unreadable"
	| "token_invalid"
	| "token_expired"
	| "token_keys_unavailable"
	| "dpop_proof_invalid"
	| "dpop_nonce_required"
	| "authorization_malformed"
	| "session_ended"
	| "event_too_large";

/** The one error class of this package. Misuse (a wrong option) is a `TypeError`. */
export class ResumeGuardError extends Error {
	override readonly name = "ResumeGuardError";
	readonly code: ResumeGuardErrorCode;
	/** `dpop_nonce_required`: for the `DPoP-Nonce` header of the answer (RFC 9449 section 9). */
	readonly dpopNonce: string | undefined;

	constructor(
		code: ResumeGuardErrorCode,
		message: string,
		options?: ErrorOptions & { readonly dpopNonce?: string | undefined },
	) {
		super(message, options);
		this.code = code;
		this.dpopNonce = options?.dpopNonce;
	}
}
