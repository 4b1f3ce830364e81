import { promises as fs } from "node:fs";
import type { Command } from "commander";
import type { BundleOptions } from "../bundle/options.ts";
import { ResumeGuardError } from "../errors.ts";

/** How a bundle's signature is verified: named as in `opa build`. */
export interface VerificationArguments {
	/** Path of a public key as PEM, or for HS algorithms of the secret. */
	readonly verificationKey?: string | undefined;
	readonly verificationKeyId?: string | undefined;
	readonly signingAlg?: string | undefined;
	readonly scope?: string | undefined;
	readonly skipVerify?: boolean | undefined;
}

/** Adds the options of `VerificationArguments`. */
export function addVerificationOptions(command: Command): Command {
	return command
		.option("--verification-key <file>", "the public key (PEM) that a bundle must be signed with")
		.option("--verification-key-id <id>", "the name of that key", "default")
		.option("--signing-alg <alg>", "the algorithm of that key", "RS256")
		.option("--scope <scope>", "the scope that the signature must have");
}

/**
 * @returns `undefined`: a signed bundle cannot be verified
 * @throws {ResumeGuardError} `file_unreadable`
 * @throws {TypeError} for a key that is to be skipped
 */
export async function readVerificationArguments({
	verificationKey,
	verificationKeyId: keyid = "default",
	signingAlg: algorithm = "RS256",
	scope,
	skipVerify,
}: VerificationArguments): Promise<BundleOptions["verification"]> {
	if (skipVerify === true && verificationKey !== undefined) {
		throw new TypeError("--skip-verify and --verification-key: a signature is verified or it is not");
	}
	if (skipVerify === true) return "skip";
	if (verificationKey === undefined) return undefined;
	const key = await readKeyFile(verificationKey);
	return { keys: { [keyid]: { key, algorithm } }, keyid, ...(scope !== undefined && { scope }) };
}

/** @throws {ResumeGuardError} `file_unreadable` */
export async function readKeyFile(path: string): Promise<string> {
	try {
		return await fs.readFile(path, "utf8");
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `the key ${path} cannot be read`, { cause });
	}
}
