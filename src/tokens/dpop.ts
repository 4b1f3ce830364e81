import { calculateJwkThumbprint, EmbeddedJWK, type JWSHeaderParameters } from "jose";
import { ResumeGuardError } from "../errors.ts";
import { earliness, isExpired } from "./claims.ts";
import {
	ASYMMETRIC,
	check,
	type FindKey,
	isNumericDate,
	isText,
	mediaType,
	now,
	type TokenClaims,
	verifyJwt,
} from "./jwt.ts";
import { createNonces } from "./nonce.ts";
import { createUsedProofs } from "./replay.ts";
import type { TokenRequest } from "./request.ts";
import { sha256 } from "./sha256.ts";
import { normalised, publicBase, publicUrl } from "./url.ts";

export interface DpopOptions {
	/**
	 * What comes before the path of a request in the URL that clients use, for `htu`; a path of its own is one that a
	 * proxy takes away. Default: the origin of the first http(s) URL of `resources` in the policy data. The request does
	 * not tell: its `Host` is what the client says.
	 */
	readonly baseUrl?: string | URL;
	/**
	 * Asks for a nonce in every proof (RFC 9449 section 9), made with this secret of 32 bytes or more: the same on all
	 * machines of a host. Default: no nonces.
	 */
	readonly nonceSecret?: Uint8Array;
}

/**
 * Verifies that the DPoP proof of a request was made for this request and this token, and uses it up. Resolves with the
 * thumbprint of its key (RFC 7638). Rejects with a `ResumeGuardError`: `dpop_proof_invalid` or `dpop_nonce_required`.
 */
export type ProofVerifier = (token: string, request: TokenRequest, rules: ProofRules) => Promise<string>;

/** What policy data says about proofs. */
export interface ProofRules {
	readonly resources: readonly string[];
	/** Seconds. */
	readonly skew: number;
}

/** Seconds that a proof is good for, beside the skew; RFC 9449 section 11.1 asks for seconds or minutes. */
const LIFETIME = 60;

/** Private members of a JWK (RFC 7518 sections 6.2 to 6.4, RFC 8037 section 2, RFC 9964 section 3). */
const PRIVATE = ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"];

/**
 * A verifier of DPoP proofs as RFC 9449 section 4.3 has them. A proof is good once on one machine.
 *
 * @throws TypeError for wrong options
 */
export function createProofVerifier({ baseUrl, nonceSecret }: DpopOptions): ProofVerifier {
	const given = baseUrl === undefined ? undefined : publicBase(baseUrl, []);
	const nonces = nonceSecret === undefined ? undefined : createNonces(nonceSecret);
	const used = createUsedProofs();
	const jwt = { key: embeddedKey, algorithms: [...ASYMMETRIC], headerFault };

	async function verify(
		token: string,
		request: TokenRequest,
		{ resources, skew }: ProofRules,
	): Promise<string> {
		const base = given ?? publicBase(undefined, resources);
		if (base === undefined) throw new Error("there is no URL to compare htu with: set dpop.baseUrl");
		const [proof, ...more] = [request.headers.dpop ?? []].flat();
		if (proof === undefined || more.length > 0) throw new Error("not exactly one DPoP header");
		const { header, claims } = await verifyJwt(proof, jwt);
		const { htm, htu, ath, jti, iat, nonce } = claims;
		if (!isText(jti)) throw new Error("jti is missing or not a string");
		if (!isNumericDate(iat)) throw new Error("iat is missing or not a number");
		if (htm !== request.method) throw new Error("htm is not the method of the request");
		if (!isText(htu) || !URL.canParse(htu) || normalised(htu) !== publicUrl(base, request.url)) {
			throw new Error("htu is not the URL of the request");
		}
		if (ath !== (await sha256(token))) throw new Error("ath is not the hash of the access token");
		await nonces?.check(nonce, now());
		const thumbprint = await calculateJwkThumbprint(Object(header.jwk));
		const id = await sha256(`${thumbprint} ${jti}`);

		// Without a pause from here on: of two requests with one proof, one is the first.
		const time = now();
		const horizon = time - LIFETIME - skew;
		if (iat < horizon) throw new Error("iat is too long ago");
		check(timeFault(claims, skew, time));
		if (!used.use(id, iat, horizon)) throw new Error("it was used before");
		return thumbprint;
	}

	return async (token, request, rules) => {
		try {
			return await verify(token, request, rules);
		} catch (cause) {
			if (cause instanceof ResumeGuardError) throw cause;
			const reason = (cause as Error).message;
			throw new ResumeGuardError("dpop_proof_invalid", `The DPoP proof is not valid: ${reason}`, { cause });
		}
	};
}

/** Without the cause: it may quote the key. */
const embeddedKey: FindKey = async (header) => {
	try {
		return await EmbeddedJWK(header);
	} catch {
		throw new Error("jwk is not a key for alg");
	}
};

function headerFault({ typ, jwk }: JWSHeaderParameters): string | undefined {
	if (mediaType(typ) !== "dpop+jwt") return "typ is not dpop+jwt";
	if (PRIVATE.some((member) => Object.hasOwn(Object(jwk), member))) return "jwk has a private part";
	return undefined;
}

/** RFC 9449 asks for neither `exp` nor `nbf`; RFC 7519 section 4.1 for respect of what is there. */
function timeFault(claims: TokenClaims, skew: number, now: number): string | undefined {
	if (Object.hasOwn(claims, "exp") && isExpired(claims.exp, skew, now)) return "exp is past";
	return earliness(claims, skew, now);
}
