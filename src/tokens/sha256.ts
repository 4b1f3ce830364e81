import { base64url } from "jose";

/** SHA-256 of the bytes, or of the text in UTF-8; base64url. */
export async function sha256(input: string | Uint8Array): Promise<string> {
	const bytes = typeof input === "string" ? new TextEncoder().encode(input) : new Uint8Array(input);
	return base64url.encode(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}
