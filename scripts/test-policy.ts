import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findOpa, runOpa } from "./opa.ts";
import { policyCases, readCases } from "./tables.ts";

// The Rego tests beside the policies, and the decision tables put to OPA itself. Every line of Rego is covered.

interface Coverage {
	readonly files: Record<
		string,
		{ readonly not_covered?: readonly { readonly start: { readonly row: number } }[] }
	>;
	readonly coverage: number;
}

const opa = await findOpa();
const folder = mkdtempSync(join(tmpdir(), "tables-"));
try {
	const document = join(folder, "tables.json");
	writeFileSync(document, JSON.stringify({ tables: policyCases(await readCases()) }));
	const args = ["test", "--timeout", "60s", "policies", "test/policies", document];

	const { status } = spawnSync(opa, [...args, "--fail-on-empty"], { stdio: "inherit" });
	process.exitCode = status ?? 1;
	if (process.exitCode === 0) {
		const { files, coverage } = JSON.parse(await runOpa([...args, "--coverage"])) as Coverage;
		for (const [file, { not_covered = [] }] of Object.entries(files)) {
			const rows = new Set(not_covered.map(({ start }) => start.row));
			if (rows.size > 0) console.error(`${file}: not covered: ${[...rows].join(", ")}`);
		}
		console.log(`COVERED: ${coverage.toFixed(1)} %`);
		if (coverage < 100) process.exitCode = 1;
	}
} finally {
	rmSync(folder, { recursive: true });
}
