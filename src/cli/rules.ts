import { promises as fs } from "node:fs";
import { fileURLToPath } from "node:url";
import { ResumeGuardError } from "../errors.ts";
import { createResumeGuard, type PolicyFault, type ResumeGuard } from "../index.ts";
import { readVerificationArguments, type VerificationArguments } from "./verification.ts";

/** What `--policy` and `--data` name. */
export interface RulesArguments {
	/** Path of a policy, Wasm that OPA built, or of a bundle with its data; the policy in this package if absent. */
	readonly policy?: string | undefined;
	/** Path of policy data; the one in this package if absent. */
	readonly data?: string | undefined;
	/** How the signature of a bundle is verified. */
	readonly verification?: VerificationArguments | undefined;
}

const DATA = fileURLToPath(new URL("../../policies/mcp/data.json", import.meta.url));

/**
 * @throws {ResumeGuardError} for a policy, data or a bundle that is not good, and a key that cannot be read
 * @throws {TypeError} for data beside a bundle, and a key without one
 */
export async function guardOf(
	{ policy, data, verification = {} }: RulesArguments,
	onFault: (fault: PolicyFault) => void,
): Promise<ResumeGuard> {
	const verified = await readVerificationArguments(verification);
	if (policy === undefined || !(await isBundle(policy))) {
		assertNoKey(policy, verification);
		return createResumeGuard({ data: data ?? DATA, ...(policy !== undefined && { policy }), onFault });
	}
	// A bundle is one revision, whole.
	if (data !== undefined) throw new TypeError("--data: the bundle that --policy names has its own");
	const bundle = { source: policy, ...(verified !== undefined && { verification: verified }) };
	return createResumeGuard({ bundle, onFault });
}

// Who gives a key relies on it.
function assertNoKey(policy: string | undefined, { verificationKey }: VerificationArguments): void {
	if (verificationKey === undefined) return;
	const what = policy === undefined ? "the policy in this package" : policy;
	throw new TypeError(`--verification-key: ${what} is no bundle, so that there is no signature to verify`);
}

// Wasm begins with a zero byte, what is compressed with gzip (RFC 1952 section 2.3.1) with these.
async function isBundle(path: string): Promise<boolean> {
	try {
		const file = await fs.open(path);
		try {
			const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0);
			return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
		} finally {
			await file.close();
		}
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `the policy ${path} cannot be read`, { cause });
	}
}
