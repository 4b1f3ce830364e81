import type { JWK } from "jose";

/** A key to verify bundles with. */
export interface BundleKey {
	/** A public key as PEM or JWK, or for HS algorithms the secret. */
	readonly key: string | JWK;
	/** RS, PS and ES with 256, 384 or 512, EdDSA, Ed25519; HS only if it is named here. Default: `RS256`. */
	readonly algorithm?: string;
	/** The scope of signatures by this key. Default: none. */
	readonly scope?: string;
}

/** A key that is ready to be used, with the one algorithm that it is for. */
export interface VerificationKey {
	readonly key: CryptoKey | Uint8Array;
	readonly algorithm: string;
	readonly scope: string;
}

const ASYMMETRIC = /^(?:[RPE]S(?:256|384|512)|EdDSA|Ed25519)$/;
const SYMMETRIC = /^HS(256|384|512)$/;

/**
 * Reads a key to verify with. One algorithm for a key, from here and never from the signature: that is what keeps a
 * public key from being taken for an HMAC secret (RFC 8725 section 3.1).
 *
 * @throws TypeError
 */
export async function readKey(id: string, given: BundleKey): Promise<VerificationKey> {
	const { key, algorithm = "RS256", scope = "", ...others } = Object(given) as BundleKey;
	const [unknown] = Object.keys(others);
	if (unknown !== undefined) throw misuse(id, `there is no \`${unknown}\``);
	if (typeof algorithm !== "string" || typeof scope !== "string") {
		throw misuse(id, "`algorithm` and `scope` must be strings");
	}
	const bits = SYMMETRIC.exec(algorithm)?.[1];
	if (bits !== undefined) return { key: readSecret(id, key, Number(bits) / 8), algorithm, scope };
	if (!ASYMMETRIC.test(algorithm)) throw misuse(id, "`algorithm` is none that bundles are signed with");
	try {
		return { key: await readPublicKey(key, algorithm), algorithm, scope };
	} catch {
		// Without the cause, which may quote the key.
		throw misuse(id, `\`key\` is no public key for ${algorithm}, as PEM or JWK`);
	}
}

function readSecret(id: string, key: unknown, bytes: number): Uint8Array {
	if (typeof key !== "string" || key.includes("-----BEGIN")) {
		throw misuse(
			id,
			"`key` is no secret: with an HS algorithm it is text that only signer and verifier know",
		);
	}
	const secret = new TextEncoder().encode(key);
	// RFC 7518 section 3.2.
	if (secret.length < bytes) throw misuse(id, `the secret must have ${bytes} bytes or more`);
	return secret;
}

async function readPublicKey(key: unknown, algorithm: string): Promise<CryptoKey> {
	const { importJWK, importSPKI } = await import("jose");
	if (typeof key === "string") {
		if (key.includes("PRIVATE KEY")) throw new Error("a private key");
		const { createPublicKey } = await import("node:crypto");
		// PKCS #1 and certificates become what jose reads.
		const spki = createPublicKey(key).export({ type: "spki", format: "pem" }).toString();
		return importSPKI(spki, algorithm);
	}
	const jwk = Object(key) as JWK;
	if (jwk.kty === "oct" || jwk.d !== undefined) throw new Error("a private key");
	if (jwk.alg !== undefined && jwk.alg !== algorithm) throw new Error("a key for another algorithm");
	return (await importJWK(jwk, algorithm)) as CryptoKey;
}

function misuse(id: string, what: string): TypeError {
	return new TypeError(`createResumeGuard: the bundle key ${JSON.stringify(id)}: ${what}`);
}
