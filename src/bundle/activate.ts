import type { Compile } from "../policy.ts";
import { loadRules, type Rules } from "../rules.ts";
import { unpack } from "./archive.ts";
import { readContent } from "./content.ts";
import type { Floor } from "./floor.ts";
import { readManifest } from "./manifest.ts";
import type { BundleSettings } from "./options.ts";
import { runOwnTests } from "./self-test.ts";
import { verify } from "./verify.ts";

export interface BundleRules extends Rules {
	/** Of the manifest's metadata. */
	readonly sequence: number | undefined;
}

/**
 * Makes rules of a bundle, or says why it is refused. The signature comes first: nothing of a bundle is believed before.
 * The floor is raised last, when nothing can go wrong any more.
 *
 * @throws {ResumeGuardError} all the `bundle_` codes but `bundle_unavailable`; `policy_invalid`, `data_invalid`,
 *   `table_invalid`; `file_unreadable` and `file_unwritable` for the floor
 */
export async function activate(
	archive: Uint8Array,
	{ verification }: Pick<BundleSettings, "verification">,
	floor: Floor,
	compile: Compile,
): Promise<BundleRules> {
	const files = await unpack(archive);
	await verify(files, verification);
	const manifest = readManifest(files);
	const { data, wasm } = readContent(files, manifest);
	const { revision, sequence, tests } = manifest;
	await floor.check(sequence);
	const policy = await compile(wasm);
	const rules = await loadRules({ policy, data, ...(revision === "" ? { wasm } : { revision }) });
	await runOwnTests(tests, policy, rules);
	await floor.raise(sequence);
	return { ...rules, sequence };
}
