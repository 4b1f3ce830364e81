import { z } from "zod";
import { ResumeGuardError } from "../errors.ts";
import { parseJson } from "../nesting.ts";
import type { Files } from "./archive.ts";
import { digestOf, SIGNATURES, type SignedFile } from "./digest.ts";
import { readJson } from "./json.ts";
import type { Verification } from "./options.ts";

/** What a good signature says of itself. */
export interface Signature {
	readonly keyid: string;
	readonly algorithm: string;
	readonly scope: string;
}

/** A signature as it is in a bundle: nobody has vouched for any of it. */
export interface StatedSignature {
	readonly token: string;
	readonly algorithm: string | undefined;
	readonly keyid: string | undefined;
	readonly scope: string;
	readonly files: readonly SignedFile[];
}

const signatures = z.object({
	signatures: z.tuple([z.string()]),
	// OPA's own signer; another would need another verifier.
	plugin: z.literal("_default").optional(),
});

const header = z.object({ alg: z.string(), kid: z.string().optional() });

const payload = z.object({
	files: z.array(z.object({ name: z.string(), hash: z.string(), algorithm: z.string() })),
	/** From before there was `kid`. */
	keyid: z.string().optional(),
	scope: z.string().default(""),
});

/**
 * Verifies a bundle's signature as OPA does ("Bundle Signing"): a JWS of a known key over the hashes of all files;
 * every file is in it, and it has no others.
 *
 * @returns `undefined`: not signed, and it need not be
 * @throws {ResumeGuardError} `bundle_unsigned`, `bundle_signature_invalid`, `bundle_invalid`
 */
export async function verify(
	files: Files,
	verification: Verification | "skip" | undefined,
): Promise<Signature | undefined> {
	if (verification === "skip") return undefined;
	const isSigned = [...files.keys()].some((path) => path.split("/").at(-1) === SIGNATURES);
	if (verification === undefined) {
		if (isSigned) throw bad("there is no key to verify it with");
		return undefined;
	}
	const stated = readSignature(files);
	if (stated === undefined) {
		throw new ResumeGuardError("bundle_unsigned", `the bundle has no ${SIGNATURES}`);
	}
	const keyid = verification.keyid ?? stated.keyid;
	const key = keyid === undefined ? undefined : verification.keys.get(keyid);
	if (keyid === undefined || key === undefined) throw bad("its key is none of `keys`");
	if (stated.algorithm !== key.algorithm) throw bad("its algorithm is not that of its key");
	const { compactVerify } = await import("jose");
	try {
		await compactVerify(stated.token, key.key, { algorithms: [key.algorithm] });
	} catch (cause) {
		throw bad("it is not by its key", cause);
	}
	const scope = verification.scope ?? key.scope;
	if (stated.scope !== scope) throw bad("it has another scope");
	await compareFiles(files, stated.files);
	return { keyid, algorithm: key.algorithm, scope };
}

/**
 * Reads a signature without verifying it.
 *
 * @returns `undefined`: there is none
 * @throws {ResumeGuardError} `bundle_signature_invalid`, `bundle_invalid`
 */
export function readSignature(files: Files): StatedSignature | undefined {
	const content = files.get(SIGNATURES);
	if (content === undefined) return undefined;
	const read = signatures.safeParse(readJson(SIGNATURES, content));
	if (!read.success) throw bad(`${SIGNATURES} is not that of OPA with one signature`);
	const [token] = read.data.signatures;
	const [first = "", second = ""] = token.split(".");
	const { alg, kid } = part(first, header) ?? {};
	const said = part(second, payload);
	if (said === undefined) throw bad("it is not over files");
	const { files: signed, keyid, scope } = said;
	return { token, algorithm: alg, keyid: kid ?? keyid, scope, files: signed };
}

async function compareFiles(files: Files, signed: readonly SignedFile[]): Promise<void> {
	const named = new Map(signed.map((file) => [file.name, file]));
	if (named.size !== signed.length) throw bad("it names a file twice");
	for (const [path, content] of files) {
		if (path === SIGNATURES) continue;
		const file = named.get(path);
		if (file === undefined) throw bad(`it does not have the file ${path}`);
		if ((await digestOf(path, content, file.algorithm)) !== file.hash.toLowerCase()) {
			throw bad(`the file ${path} is not the one that was signed`);
		}
		named.delete(path);
	}
	const [missing] = named.keys();
	if (missing !== undefined) throw bad(`the file ${JSON.stringify(missing)} was signed and is not there`);
}

function part<T>(encoded: string, schema: z.ZodType<T>): T | undefined {
	try {
		return schema.parse(parseJson(Buffer.from(encoded, "base64url").toString()));
	} catch {
		return undefined;
	}
}

function bad(what: string, cause?: unknown): ResumeGuardError {
	return new ResumeGuardError("bundle_signature_invalid", `the bundle's signature is not good: ${what}`, {
		cause,
	});
}
