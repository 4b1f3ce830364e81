/**
 * Why the guard could not do what it was asked. Decisions are never errors: a refusal is an answer.
 *
 * - `policy_invalid`: the Wasm is not a policy that this package can evaluate (ABI, entrypoints, memory)
 * - `data_invalid`: the policy data breaks `schemas/data.json`; the message has the pointer to the place
 * - `table_invalid`: a decision table breaks `schemas/table.json`, or there is no case at all; the message has the place
 * - `file_unreadable`: a path that was given cannot be read
 * - `file_unwritable`: a path that was given cannot be written
 * - `bundle_unavailable`: the bundle cannot be fetched from its URL
 * - `bundle_too_large`: the bundle has more bytes, packed or unpacked, or more files than one may have
 * - `bundle_invalid`: what was given is no bundle that can be read (archive, manifest, JSON)
 * - `bundle_unsigned`: the bundle has no signature, and one is required
 * - `bundle_signature_invalid`: the signature is not good for the bundle: signer, scope, or a file of either
 * - `bundle_roots_invalid`: the bundle is of another root than `mcp`, or has what its roots do not permit
 * - `bundle_tests_failed`: the bundle fails a case of its own decision tables
 * - `bundle_outdated`: the bundle's sequence is missing, or lower than one that was active
 * - `log_unavailable`: the decision log's sink does not take records now; they are kept and tried again
 * - `log_refused`: the decision log's sink does not take these records
 * - `opa_missing`: what was asked needs OPA (to compile Rego, for example), and there is none that fits
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
	| "table_invalid"
	| "file_unreadable"
	| "file_unwritable"
	| "bundle_unavailable"
	| "bundle_too_large"
	| "bundle_invalid"
	| "bundle_unsigned"
	| "bundle_signature_invalid"
	| "bundle_roots_invalid"
	| "bundle_tests_failed"
	| "bundle_outdated"
	| "log_unavailable"
	| "log_refused"
	| "opa_missing"
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
