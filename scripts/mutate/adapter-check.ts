import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { startAsked } from "./asked.ts";
import type { Model } from "./model.ts";
import type { Mutant } from "./mutant.ts";
import type { Finding } from "./rego-check.ts";

/** Looks at mutants of src/, without a change in the working tree. */
export interface AdapterCheck {
	check(mutant: Mutant): Promise<Finding>;
	close(): void;
}

/** The tests about each of the files. */
const TESTS: Readonly<Record<string, readonly string[]>> = {
	"src/decision.ts": ["test/decision.test.ts", "test/guard.test.ts"],
	"src/facts.ts": ["test/guard.test.ts", "test/claims.test.ts"],
	"src/fold.ts": ["test/fold.test.ts", "test/guard.test.ts"],
	"src/data.ts": ["test/data.test.ts"],
};

export function createAdapterCheck(model: Model): AdapterCheck {
	const tables = startAsked<{ guard: string }, { failed?: string }>("scripts/mutate/tables.ts");
	const folder = mkdtempSync(join(tmpdir(), "mutants-"));
	let builds = 0;

	/** The guard with the mutant in it, as one module. */
	async function bundle({ file, text }: Mutant): Promise<string | undefined> {
		builds += 1;
		const outfile = join(folder, `guard-${builds}.mjs`);
		try {
			await build({
				entryPoints: ["src/index.ts"],
				outfile,
				bundle: true,
				format: "esm",
				platform: "node",
				target: "node20",
				logLevel: "silent",
				banner: {
					js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
				},
				plugins: [
					{
						name: "mutant",
						setup: ({ onLoad }) =>
							onLoad({ filter: /\.ts$/ }, ({ path }) =>
								path === resolve(file) ? { contents: text, loader: "ts" } : undefined,
							),
					},
				],
			});
			return outfile;
		} catch {
			return undefined;
		}
	}

	return {
		async check(mutant) {
			const guard = await bundle(mutant);
			if (guard === undefined) return { by: "invalid" };
			const { failed } = (await tables.ask({ guard })) ?? { failed: "it does not end" };
			if (failed !== undefined) return { by: "tables", what: failed };
			if (!(await model.isSame({ guard }))) return { by: "model" };

			const text = join(folder, "mutant.ts");
			writeFileSync(text, mutant.text);
			const environment = { MUTANT_FILE: mutant.file, MUTANT_TEXT: text };
			return (await runTests(TESTS[mutant.file] ?? [], environment)) ? undefined : { by: "tests" };
		},
		close() {
			tables.close();
			rmSync(folder, { recursive: true });
		},
	};
}

/** Whether these test files pass, under these variables of the environment. */
function runTests(files: readonly string[], environment: Readonly<Record<string, string>>): Promise<boolean> {
	const args = ["vitest", "run", "--config", "scripts/mutate/vitest.config.ts", "--bail=1", ...files];
	return new Promise((done, reject) => {
		const child = spawn("npx", args, { stdio: "ignore", env: { ...process.env, ...environment } });
		child.on("error", reject);
		child.on("close", (status) => done(status === 0));
	});
}
