import type { Files } from "./archive.ts";
import { canonical } from "./json.ts";

/** A file as a signature names it (OPA, "Bundle Signing"). */
export interface SignedFile {
	readonly name: string;
	/** Hexadecimal. */
	readonly hash: string;
	readonly algorithm: string;
}

/** Not MD5 and SHA-1, which OPA verifies too; it signs with SHA-256. */
const ALGORITHMS: readonly string[] = ["SHA-256", "SHA-384", "SHA-512"];

export const SIGNATURES = ".signatures.json";

/**
 * The hash of a file of a bundle, as OPA makes it: of JSON documents that a bundle is made of it is independent of
 * white space and of the order of members, of others it is that of their bytes.
 *
 * @returns hexadecimal; `undefined`: no algorithm that is accepted here
 * @throws {ResumeGuardError} `bundle_invalid` for a document that is not JSON
 */
export async function digestOf(
	path: string,
	content: Uint8Array,
	algorithm: string,
): Promise<string | undefined> {
	if (!ALGORITHMS.includes(algorithm)) return undefined;
	const bytes = isDocument(path) ? new TextEncoder().encode(canonical(path, content)) : content;
	return hex(await crypto.subtle.digest(algorithm, bytes as BufferSource));
}

/** All files of a bundle but the signatures themselves, as a signature names them. */
export async function signedFiles(files: Files): Promise<SignedFile[]> {
	const signed: SignedFile[] = [];
	for (const [name, content] of files) {
		if (name === SIGNATURES) continue;
		const hash = await digestOf(name, content, "SHA-256");
		if (hash !== undefined) signed.push({ name, hash, algorithm: "SHA-256" });
	}
	return signed;
}

export function hex(bytes: ArrayBuffer): string {
	return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function isDocument(path: string): boolean {
	return /^(?:.*\/)?(?:data\.json|data\.ya?ml|\.manifest)$/.test(path);
}
