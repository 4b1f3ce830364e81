import { createHmac, createSecretKey, randomBytes } from "node:crypto";

/**
 * Replaces a value by a name that says nothing of it and is the same wherever the value is: HMAC-SHA-256 (RFC 2104),
 * cut to 128 bits. `domain` says what kind of value it is: equal values of two kinds have two names.
 */
export type Pseudonym = (domain: string, value: string) => string;

/** A key that can be guessed is none: whoever has the log would try the subjects that there may be. */
const SHORTEST_KEY = 16;

/**
 * @param key at least 16 bytes; text is taken as UTF-8. Default: random, so that names are the same for as long as the
 *   process lives
 * @throws {TypeError} for a shorter one
 */
export function createPseudonym(key: string | Uint8Array | undefined): Pseudonym {
	const bytes = key === undefined ? randomBytes(32) : typeof key === "string" ? Buffer.from(key) : key;
	if (!(bytes instanceof Uint8Array) || bytes.byteLength < SHORTEST_KEY) {
		throw new TypeError(`createDecisionLog: \`key\` must be at least ${SHORTEST_KEY} bytes`);
	}
	const secret = createSecretKey(bytes);
	return (domain, value) => {
		const digest = createHmac("sha256", secret).update(`${domain}\0${value}`).digest();
		return `hmac:${digest.subarray(0, 16).toString("base64url")}`;
	};
}

/** JSON text that is the same for what is equal as JSON: members in order. */
export function canonicalJson(value: unknown): string {
	if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
	if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
	const members = Object.entries(value).filter(([, member]) => member !== undefined);
	members.sort(([a], [b]) => (a < b ? -1 : 1));
	return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(",")}}`;
}
