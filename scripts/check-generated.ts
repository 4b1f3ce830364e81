import { existsSync, readFileSync } from "node:fs";
import { generators, type Output } from "./generators.ts";
import { findOpa } from "./opa.ts";

// Makes again all that is generated and compares it with what is committed. Writes nothing.

const noOpa = await findOpa({ exact: true }).then(
	() => undefined,
	(error: Error) => error.message,
);

let failed = 0;
for (const { paths, needsOpa, generate } of generators) {
	if (needsOpa && noOpa !== undefined) {
		for (const path of paths) console.log(`skipped   ${path}`);
		continue;
	}
	const outputs = await generate().catch((error: Error) => error);
	for (const path of paths) {
		const state = outputs instanceof Error ? `FAILED    ${path}: ${outputs.message}` : compare(path, outputs);
		if (!state.startsWith("current")) failed++;
		console.log(state);
	}
}

if (failed > 0) console.error("Run `npm run generate` and commit what it writes.");
if (noOpa !== undefined) console.error(noOpa);
process.exitCode = failed > 0 || (noOpa !== undefined && process.env.CI === "true") ? 1 : 0;

function compare(path: string, outputs: readonly Output[]): string {
	const made = outputs.find((output) => output.path === path);
	if (made === undefined) throw new Error(`${path} was not generated`);
	if (!existsSync(path)) return `MISSING   ${path}`;
	const current = Buffer.from(made.content).equals(readFileSync(path));
	return `${current ? "current" : "STALE  "}   ${path}`;
}
