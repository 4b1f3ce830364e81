import { createHash, X509Certificate } from "node:crypto";
import { generate, type SelfsignedOptions } from "selfsigned";

/** A certificate and its key, in PEM. */
export interface Identity {
	readonly key: string;
	readonly cert: string;
}

const LOOPBACK: NonNullable<SelfsignedOptions["extensions"]> = [
	{ name: "basicConstraints", cA: false },
	{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] },
];
const AUTHORITY: NonNullable<SelfsignedOptions["extensions"]> = [
	{ name: "basicConstraints", cA: true, critical: true },
	{ name: "keyUsage", keyCertSign: true, critical: true },
];

async function createIdentity(
	name: string,
	extensions: NonNullable<SelfsignedOptions["extensions"]>,
	ca?: Identity,
): Promise<Identity> {
	const { private: key, cert } = await generate([{ name: "commonName", value: name }], {
		keyType: "ec",
		algorithm: "sha256",
		extensions,
		...(ca && { ca }),
	});
	return { key, cert };
}

export function createAuthority(): Promise<Identity> {
	return createIdentity("authority", AUTHORITY);
}

/** An identity for servers on 127.0.0.1 and for clients; without an authority it has signed itself. */
export function createPeer(name: string, authority?: Identity): Promise<Identity> {
	return createIdentity(name, LOOPBACK, authority);
}

export function derOf({ cert }: Identity): Uint8Array {
	return new X509Certificate(cert).raw;
}

/** The claim that binds a token to a client certificate (RFC 8705 section 3.1). */
export function boundToCertificate(identity: Identity): { cnf: { "x5t#S256": string } } {
	return { cnf: { "x5t#S256": createHash("sha256").update(derOf(identity)).digest("base64url") } };
}
