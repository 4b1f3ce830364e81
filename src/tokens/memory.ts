import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { deepFreeze } from "../frozen.ts";
import { type JwtRules, type VerifiedJwt, verifyJwt } from "./jwt.ts";

/** Tokens that are remembered. */
const MOST = 1_000;

/**
 * Verifies as `verifyJwt` does, each signature once: a client sends the same token with all of its requests, and nothing in
 * a request to a guarded host costs more. The key is looked for each time, and what it has verified is good for that very
 * key: one that the issuer has withdrawn verifies nothing. A token is known by its SHA-256. Its claims are frozen, since all
 * requests with it have the same.
 */
export function createJwtMemory(rules: JwtRules): (jwt: string) => Promise<VerifiedJwt> {
	const known = new LRUCache<string, VerifiedJwt & { readonly key: object }>({ max: MOST });

	return async (jwt) => {
		const name = hash("sha256", jwt, "base64url");
		const verified = known.get(name);
		if (verified !== undefined && (await rules.key(verified.header)) === verified.key) return verified;

		let key: object | undefined;
		const { header, claims } = await verifyJwt(jwt, {
			...rules,
			async key(header) {
				const found = await rules.key(header);
				key = found;
				return found;
			},
		});
		const frozen = { header: deepFreeze(header), claims: deepFreeze(claims) };
		if (key !== undefined) known.set(name, { ...frozen, key });
		return frozen;
	};
}
