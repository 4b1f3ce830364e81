import { decideBy, momentsOf } from "../decide.ts";
import { ResumeGuardError } from "../errors.ts";
import { loadPolicy } from "../policy.ts";
import type { Rules } from "../rules.ts";
import { decidersByData, readCases, runCase } from "../tables.ts";

/** So many names are enough to see what is wrong. */
const SHOWN = 3;

/**
 * Runs a bundle's own decision tables on its own Wasm, over its own data.
 *
 * @throws {ResumeGuardError} `bundle_tests_failed`, `table_invalid`, `data_invalid`
 */
export async function runOwnTests(
	tests: Readonly<Record<string, unknown>>,
	module: WebAssembly.Module,
	{ data, revision }: Rules,
): Promise<void> {
	const tables = Object.entries(tests).map(([name, document]) => ({ name, document }));
	if (tables.length === 0) return;
	const deciders = decidersByData(async (data) => {
		// The host has requests to answer meanwhile.
		await new Promise((resolve) => setTimeout(resolve));
		const rules = { policy: await loadPolicy(module, data), data, revision };
		return momentsOf((moment, question) => decideBy(rules, moment, question, () => {}).decision);
	});
	const failed: string[] = [];
	for (const one of await readCases(tables, data)) {
		const { name, ok, differs } = await runCase(one, deciders);
		if (!ok) failed.push(`${name} (${differs.join(", ")})`);
	}
	if (failed.length === 0) return;
	const more = failed.length > SHOWN ? `, and ${failed.length - SHOWN} more` : "";
	throw new ResumeGuardError(
		"bundle_tests_failed",
		`the bundle fails its own tables: ${failed.slice(0, SHOWN).join("; ")}${more}`,
	);
}
