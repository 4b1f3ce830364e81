import type { Sdk } from "./servers.ts";

/**
 * Where a call of a client of an SDK, as it is, has to hang until its own timeout: its resume gets an HTTP error, of which
 * neither client tells its caller, and an answer that it would tell of must not be given to who asks. In all other cells
 * every call settles.
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
