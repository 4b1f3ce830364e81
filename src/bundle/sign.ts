import { createPrivateKey, type KeyObject } from "node:crypto";
import type { Files } from "./archive.ts";
import { signedFiles } from "./digest.ts";

export interface SigningKey {
	/** A private key as PEM, or for HS algorithms the secret. */
	readonly key: string;
	/** Default: the usual one for the key: `RS256`, `ES256` to `ES512`, `EdDSA`. */
	readonly algorithm?: string | undefined;
	/** The name that verifiers know the key by. Default: `default`, as in `opa build`. */
	readonly keyid?: string | undefined;
	/** Default: none. */
	readonly scope?: string | undefined;
}

/**
 * Signs the files of a bundle as OPA does ("Bundle Signing").
 *
 * @returns the content of `.signatures.json`
 * @throws TypeError for a key that does not fit its algorithm
 */
export async function sign(files: Files, given: SigningKey): Promise<string> {
	const { keyid = "default", scope } = given;
	const { key, algorithm } = readKey(given.key, given.algorithm);
	const { CompactSign } = await import("jose");
	const claims = { files: await signedFiles(files), keyid, ...(scope !== undefined && { scope }) };
	const unsigned = new CompactSign(new TextEncoder().encode(JSON.stringify(claims)));
	unsigned.setProtectedHeader({ alg: algorithm, kid: keyid, typ: "JWT" });
	const token = await unsigned.sign(key).catch(() => {
		// Without the cause, which may quote the key.
		throw new TypeError(`the signing key does not fit ${algorithm}`);
	});
	return JSON.stringify({ signatures: [token] }, undefined, 1);
}

function readKey(given: string, algorithm: string | undefined) {
	if (algorithm?.startsWith("HS")) {
		if (given.includes("-----BEGIN")) {
			throw new TypeError("the signing key is no secret, as an HS algorithm needs");
		}
		return { key: new TextEncoder().encode(given), algorithm };
	}
	const key = readPrivateKey(given);
	return { key, algorithm: algorithm ?? usualAlgorithm(key) };
}

function readPrivateKey(pem: string): KeyObject {
	try {
		return createPrivateKey(pem);
	} catch {
		throw new TypeError("the signing key is no private key as PEM without a passphrase");
	}
}

function usualAlgorithm({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
	const curves = new Map([
		["prime256v1", "ES256"],
		["secp384r1", "ES384"],
		["secp521r1", "ES512"],
	]);
	if (asymmetricKeyType === "rsa") return "RS256";
	if (asymmetricKeyType === "ed25519") return "EdDSA";
	const algorithm = curves.get(asymmetricKeyDetails?.namedCurve ?? "");
	if (algorithm === undefined)
		throw new TypeError("the signing key is of a kind that bundles are not signed with");
	return algorithm;
}
