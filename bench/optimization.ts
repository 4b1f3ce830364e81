import { createResumeGuard, type ResumeGuard } from "mcp-resume-guard";
import { buildWasm } from "../scripts/build-wasm.ts";
import type { Comparison } from "./compare.ts";
import { listTools, resume, storyEvents, TOKENS } from "./questions.ts";

/**
 * The same decisions under the policies built with each `-O` of `opa build`. Where a level makes the same Wasm as
 * `-O 0`, this says so, and there is nothing to time. Needs OPA.
 */
export async function compareOptimizations(): Promise<Comparison[]> {
	const plain = await build(0);
	const plainGuard = await guardOf(plain);
	const story = storyEvents();
	const comparisons: Comparison[] = [];
	for (const level of [1, 2]) {
		const optimized = await build(level);
		const size = `${Math.round(optimized.byteLength / 1024)} KiB`;
		if (Buffer.compare(optimized, plain) === 0) {
			console.log(`-O ${level}: the same ${size} as -O 0`);
			continue;
		}
		const guard = await guardOf(optimized);
		const add = (what: string, decide: (guard: ResumeGuard) => unknown) =>
			comparisons.push({
				subject: `${what}, -O ${level} (${size})`,
				run: () => decide(guard),
				beside: "-O 0",
				runBeside: () => decide(plainGuard),
			});
		for (const token of TOKENS) {
			const session = listTools(token);
			const resumed = resume(token, story);
			add(`session, ${token} token`, (guard) => guard.session(session));
			add(`resume, ${token} token`, (guard) => guard.resume(resumed));
		}
	}
	return comparisons;
}

function build(level: number): Promise<Uint8Array<ArrayBuffer>> {
	const options = ["--capabilities", "tools/capabilities.json", "-O", String(level)];
	return buildWasm([...options, "--ignore", "*_test.rego", "--ignore", "data.json", "policies"]);
}

function guardOf(policy: Uint8Array): Promise<ResumeGuard> {
	return createResumeGuard({ data: "policies/mcp/data.json", policy });
}
