import { findOpa } from "../../scripts/opa.ts";
import { compareColdStarts, FIRST_DECISIONS } from "./cold-start.ts";
import { reportMemory } from "./memory-report.ts";
import { buildScripts, runScript } from "./scripts.ts";

/**
 * V8 of Node 20 aborts ("unreachable code" in its deoptimizer) when it gives up code into which it has inlined certain
 * calls of Wasm: those of Cedar's glue. All are timed in one process, hence all without.
 */
const FLAGS = process.versions.node.startsWith("20.") ? ["--no-turbo-inline-js-wasm-calls"] : [];

/**
 * The same decisions by this guard, by what people would pick instead, and by what bounds it from below; what the first
 * decision of a process takes; what memory a million of them leave behind. Writes the plot beside the tables.
 */
export async function compareAlternatives(plotFile: string): Promise<string> {
	const opa = await findOpa();
	await buildScripts(["decisions", "memory", ...FIRST_DECISIONS]);
	const decisions = await runScript("decisions", { flags: FLAGS, args: [opa, plotFile] });
	const coldStarts = await compareColdStarts(opa);
	return [decisions, coldStarts, await reportMemory()].join("\n\n");
}
