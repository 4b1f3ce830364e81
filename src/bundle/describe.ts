import { ResumeGuardError, type ResumeGuardErrorCode } from "../errors.ts";
import { createCompiler } from "../policy.ts";
import { activate } from "./activate.ts";
import { unpack } from "./archive.ts";
import { SIGNATURES } from "./digest.ts";
import { createFloor } from "./floor.ts";
import { readManifest } from "./manifest.ts";
import type { Verification } from "./options.ts";
import { readSignature } from "./verify.ts";

/** What is in a bundle, and whether a guard would take it. */
export interface Description {
	/** Why a guard would refuse it; absent: it would not. */
	readonly refused?: { readonly code: ResumeGuardErrorCode; readonly message: string };
	/** As its manifest has it; absent: a guard makes one of what is in it. */
	readonly revision?: string;
	readonly roots: readonly string[];
	/** Of Wasm. */
	readonly entrypoints: readonly string[];
	readonly sequence?: number;
	/** The names of its own decision tables. */
	readonly tests: readonly string[];
	/** Absent: it is not signed. */
	readonly signature?: {
		readonly keyid?: string;
		readonly algorithm?: string;
		readonly scope?: string;
		/** How many it is over. */
		readonly files: number;
		/** Whether it is good, by the key that was given. */
		readonly verified: boolean;
	};
	/** Bytes. */
	readonly size: { readonly packed: number; readonly unpacked: number };
	readonly files: readonly { readonly path: string; readonly size: number }[];
}

/**
 * Describes a bundle, good or not.
 *
 * @param verification `undefined`: its signature is not looked at
 * @throws {ResumeGuardError} `bundle_too_large`, `bundle_invalid`, `bundle_signature_invalid`: it cannot be read
 */
export async function describeBundle(archive: Uint8Array, verification?: Verification): Promise<Description> {
	const files = await unpack(archive);
	const stated = readSignature(files);
	const manifest = readManifest(files);
	const refused = await activate(
		archive,
		{ verification: verification ?? "skip" },
		createFloor(undefined),
		createCompiler(),
	).then(
		() => undefined,
		(error: unknown) => {
			if (error instanceof ResumeGuardError) return { code: error.code, message: error.message };
			throw error;
		},
	);
	const { revision, roots, wasm, sequence, tests } = manifest;
	const sizes = [...files].map(([path, content]) => ({ path, size: content.length }));
	return {
		...(refused !== undefined && { refused }),
		...(revision !== "" && { revision }),
		roots,
		entrypoints: wasm.map(({ entrypoint }) => entrypoint),
		...(sequence !== undefined && { sequence }),
		tests: Object.keys(tests),
		...(stated !== undefined && {
			signature: {
				...(stated.keyid !== undefined && { keyid: stated.keyid }),
				...(stated.algorithm !== undefined && { algorithm: stated.algorithm }),
				...(stated.scope !== "" && { scope: stated.scope }),
				files: stated.files.length,
				// A bundle whose signature is good may still be refused for something else.
				verified:
					verification !== undefined &&
					refused?.code !== "bundle_signature_invalid" &&
					refused?.code !== "bundle_unsigned",
			},
		}),
		size: { packed: archive.length, unpacked: sizes.reduce((total, { size }) => total + size, 0) },
		files: sizes.filter(({ path }) => path !== SIGNATURES),
	};
}
