import { createProofVerifier, type DpopOptions, type ProofRules } from "./dpop.ts";
import { isText, type TokenClaims } from "./jwt.ts";
import type { TokenRequest } from "./request.ts";
import { sha256 } from "./sha256.ts";

/** Rejects with why the sender has not proved to be whom the token is bound to. */
export type SenderCheck = (
	token: string,
	claims: TokenClaims,
	request: TokenRequest,
	rules: ProofRules,
) => Promise<void>;

/** The confirmation methods of RFC 9449 section 6.1 and RFC 8705 section 3.1. */
interface Confirmation {
	readonly jkt?: string;
	readonly "x5t#S256"?: string;
}

const METHODS = ["jkt", "x5t#S256"];

/**
 * Checks who presents a token. Without `cnf` anyone may, as a Bearer token; with it, whoever proves possession of
 * every key that it names (RFC 7800 section 3.1). A token that is bound to a DPoP key is good in no other scheme, and
 * no other token in this one (RFC 9449 sections 7.1 and 7.2).
 *
 * @throws TypeError for wrong options
 */
export function createSenderCheck(options: DpopOptions): SenderCheck {
	const verifyProof = createProofVerifier(options);

	return async (token, claims, request, rules) => {
		const { jkt, "x5t#S256": certificate } = confirmation(claims);
		if ((jkt !== undefined) !== (request.scheme === "DPoP")) {
			throw new Error("cnf and the scheme do not fit");
		}
		if (certificate !== undefined) {
			if (request.certificate === undefined) throw new Error("cnf without a client certificate");
			if ((await sha256(request.certificate)) !== certificate) {
				throw new Error("cnf is of another client certificate");
			}
		}
		// Last, since it uses the proof up.
		if (jkt !== undefined && (await verifyProof(token, request, rules)) !== jkt) {
			throw new Error("cnf is of another DPoP key");
		}
	};
}

function confirmation(claims: TokenClaims): Confirmation {
	if (!Object.hasOwn(claims, "cnf")) return {};
	const { cnf } = claims;
	if (typeof cnf !== "object" || cnf === null) throw new Error("cnf is not an object");
	const methods = Object.entries(cnf);
	if (methods.length === 0 || !methods.every(([name, value]) => METHODS.includes(name) && isText(value))) {
		throw new Error("cnf has a confirmation method that is not verified here, or none");
	}
	return cnf;
}
