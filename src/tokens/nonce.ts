import { base64url } from "jose";
import { ResumeGuardError } from "../errors.ts";

/** Seconds that one nonce is given out for; it is good for as long before and after. */
const PERIOD = 300;
const MIN_SECRET = 32;

/** Nonces for DPoP proofs (RFC 9449 sections 8 and 9). */
export interface Nonces {
	/** Rejects with `dpop_nonce_required`, which brings a good nonce, if this is none. */
	check(nonce: unknown, now: number): Promise<void>;
}

/**
 * Nonces that nothing has to be remembered for: the HMAC of the time under a secret. Machines with the same secret take
 * each other's.
 *
 * @throws TypeError for a secret of less than 32 bytes
 */
export function createNonces(secret: Uint8Array): Nonces {
	if (!(secret instanceof Uint8Array) || secret.length < MIN_SECRET) {
		throw new TypeError(`dpop.nonceSecret is ${MIN_SECRET} bytes or more`);
	}
	const key = crypto.subtle.importKey(
		"raw",
		new Uint8Array(secret),
		{ name: "HMAC", hash: "SHA-256" },
		false,
		["sign"],
	);

	async function nonceOf(period: number): Promise<string> {
		const text = new TextEncoder().encode(`DPoP-Nonce ${period}`);
		return base64url.encode(new Uint8Array(await crypto.subtle.sign("HMAC", await key, text)));
	}

	return {
		async check(nonce, now) {
			const period = Math.floor(now / PERIOD);
			// The clock of the machine that gave it out may be ahead.
			const [current, ...others] = await Promise.all([period, period - 1, period + 1].map(nonceOf));
			if (nonce === current || others.some((other) => other === nonce)) return;
			const message = "The DPoP proof needs a nonce of this server";
			throw new ResumeGuardError("dpop_nonce_required", message, { dpopNonce: current });
		},
	};
}
