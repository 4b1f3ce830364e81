import { type CryptoKey, compactVerify, decodeProtectedHeader, type JWSHeaderParameters } from "jose";

/** The JWS algorithms whose keys can be public (RFC 7518, RFC 8037, RFC 9864). */
export const ASYMMETRIC: readonly string[] = [256, 384, 512]
	.flatMap((bits) => [`RS${bits}`, `PS${bits}`, `ES${bits}`])
	.concat("EdDSA", "Ed25519");

const MAX_LENGTH = 16_384;
/** A JWS in compact serialization (RFC 7515 section 7.1). */
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Bytes that are no UTF-8 would become U+FFFD, and two subjects one. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** A JWT claims set as it is in the token. */
export type TokenClaims = Readonly<Record<string, unknown>>;

/** Finds the key that a token with this header is to be verified with. */
export type FindKey = (header: JWSHeaderParameters) => Promise<CryptoKey>;

/** What a good signature stands for. */
export interface VerifiedJwt {
	readonly header: JWSHeaderParameters;
	readonly claims: TokenClaims;
}

export interface JwtRules {
	readonly key: FindKey;
	readonly algorithms: string[];
	/** Why this header is not that of such a token; `undefined`: it may be one. Asked before any key is looked for. */
	readonly headerFault: (header: JWSHeaderParameters) => string | undefined;
}

/** NumericDate, seconds. */
export function now(): number {
	return Date.now() / 1000;
}

/** JSON has numbers that are no NumericDate: `1e999` parses as Infinity and would never expire. */
export function isNumericDate(value: unknown): value is number {
	return typeof value === "number" && Number.isFinite(value);
}

export function isText(value: unknown): value is string {
	return typeof value === "string" && value !== "";
}

/** Media types have no case, and `application/` may be left out (RFC 7515 section 4.1.9). */
export function mediaType(typ: unknown): string | undefined {
	return typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : undefined;
}

export function check(fault: string | undefined): void {
	if (fault !== undefined) throw new Error(fault);
}

/**
 * The header and the claims of a signed JWT (RFC 7519 section 7.2); what the claims say is not looked at. Rejects with
 * a reason in fixed words, or with jose's error.
 */
export async function verifyJwt(
	jwt: unknown,
	{ key, algorithms, headerFault }: JwtRules,
): Promise<VerifiedJwt> {
	if (typeof jwt !== "string" || jwt.length > MAX_LENGTH || !COMPACT.test(jwt)) {
		throw new Error("no compact JWS");
	}
	const header = parsed(() => decodeProtectedHeader(jwt), "the header is not JSON");
	// RFC 7515 section 4.1.11: an extension that is not understood; none is. RFC 7797 section 7: no b64 in a JWT.
	if (Object.hasOwn(header, "crit") || Object.hasOwn(header, "b64")) {
		throw new Error("a critical header extension");
	}
	check(headerFault(header));
	const { payload } = await compactVerify(jwt, key, { algorithms });
	return { header, claims: parseClaims(payload) };
}

function parseClaims(payload: Uint8Array): TokenClaims {
	const claims: unknown = parsed(() => JSON.parse(utf8.decode(payload)), "the payload is not JSON");
	if (typeof claims !== "object" || claims === null || Array.isArray(claims)) {
		throw new Error("the payload is not a JWT claims set");
	}
	if (!isWellFormed(claims)) throw new Error("a lone surrogate in a claim");
	return claims as TokenClaims;
}

/** Without the cause: a SyntaxError quotes what it could not parse. */
function parsed<T>(parse: () => T, fault: string): T {
	try {
		return parse();
	} catch {
		throw new Error(fault);
	}
}

function isWellFormed(value: unknown): boolean {
	if (typeof value === "string") return !LONE_SURROGATE.test(value);
	if (typeof value !== "object" || value === null) return true;
	return Object.entries(value).every(([key, member]) => isWellFormed(key) && isWellFormed(member));
}
