import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createResumeGuard } from "../../src/index.ts";
import { buildWasm } from "../build-wasm.ts";
import { findOpa } from "../opa.ts";
import type { createTableCheck } from "./check.ts";
import type { Model } from "./model.ts";
import type { Mutant } from "./mutant.ts";

/** What found a mutant. `invalid`: OPA does not take it, so that it is none. */
export type Finding =
	| { readonly by: "tests" | "tables" | "model" | "invalid"; readonly what?: string }
	| undefined;

/** A copy of the policies in which one mutant after the other is looked at. */
export interface RegoCheck {
	check(mutant: Mutant): Promise<Finding>;
	close(): void;
}

export async function createRegoCheck(
	checkTables: ReturnType<typeof createTableCheck>,
	model: Model,
): Promise<RegoCheck> {
	const opa = await findOpa();
	const folder = mkdtempSync(join(tmpdir(), "mutants-"));
	const policies = join(folder, "policies");
	cpSync("policies", policies, { recursive: true });

	async function look(): Promise<Finding> {
		const { status, output } = await run(opa, ["test", "--timeout", "60s", policies]);
		// 2: a test has failed; 1: the policy is no policy.
		if (status === 2) return { by: "tests", what: /data\.(\S+): FAIL/.exec(output)?.[1] ?? "" };
		if (status !== 0) return { by: "invalid" };

		const options = ["--capabilities", "tools/capabilities.json", "-O", "0"];
		const sources = ["--ignore", "*_test.rego", "--ignore", "data.json", policies];
		const wasm = await buildWasm([...options, ...sources]).catch(() => undefined);
		if (wasm === undefined) return { by: "invalid" };
		const policy = await WebAssembly.compile(wasm);
		const failed = await checkTables((data) => createResumeGuard({ data, policy, onFault: () => {} }));
		if (failed !== undefined) return { by: "tables", what: failed };

		const path = join(folder, "policy.wasm");
		writeFileSync(path, wasm);
		return (await model.isSame({ policy: path })) ? undefined : { by: "model" };
	}

	return {
		async check({ file, text }) {
			const path = join(folder, file);
			writeFileSync(path, text);
			try {
				return await look();
			} finally {
				cpSync(file, path);
			}
		},
		close: () => rmSync(folder, { recursive: true }),
	};
}

function run(command: string, args: readonly string[]): Promise<{ status: number | null; output: string }> {
	return new Promise((resolve, reject) => {
		const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
		let output = "";
		child.stdout.on("data", (chunk) => {
			output += chunk;
		});
		child.stderr.resume();
		child.on("error", reject);
		child.on("close", (status) => resolve({ status, output }));
	});
}
