import type { Sdk } from "./servers.ts";

/**
 * Where a call of a client of an SDK, as it is, has to hang until its own timeout; in all other cells every call settles.
 *
 * - An expired token, another principal: the resume gets an HTTP error, of which neither client tells its caller, and what
 *   they would tell of must not be given to who asks. With a token of its own the call can be taken up.
 * - By hand: a client of v1 takes a JSON-RPC error to be of the call that was, which has ended.
 */
export const hangs: readonly { readonly scenario: string; readonly client: Sdk }[] = [
	{ scenario: "an expired token", client: "v1" },
	{ scenario: "an expired token", client: "v2" },
	{ scenario: "another principal, which ends the session", client: "v1" },
	{ scenario: "another principal, which ends the session", client: "v2" },
	{ scenario: "another principal, and the session is kept", client: "v1" },
	{ scenario: "another principal, and the session is kept", client: "v2" },
	{ scenario: "a narrower token again after the refusal, by hand", client: "v1" },
];
