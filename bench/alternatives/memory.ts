import { createResumeGuard } from "mcp-resume-guard";
import { listTools, resume, storyEvents, TOKENS } from "../questions.ts";

// `node --expose-gc memory.mjs COUNT`: what is in use before and after so many decisions of one guard, as JSON.

const count = Number(process.argv[2]);
const guard = await createResumeGuard({ data: "policies/mcp/data.json" });
const story = storyEvents();
const decisions = TOKENS.flatMap((token) => {
	const session = listTools(token);
	const resumed = resume(token, story);
	return [() => guard.session(session), () => guard.resume(resumed)];
});

function decide(times: number): void {
	for (let i = 0; i < times; i += 1) {
		const answer = decisions[i % decisions.length]?.();
		if (answer?.outcome !== "proceed" && answer?.outcome !== "reauthorize") throw new Error(answer?.code);
	}
}

async function inUse(): Promise<NodeJS.MemoryUsage> {
	for (let i = 0; i < 3; i += 1) {
		globalThis.gc?.();
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
	return process.memoryUsage();
}

if (globalThis.gc === undefined) throw new Error("run it with --expose-gc");
decide(count / 10);
const before = await inUse();
decide(count);
console.log(JSON.stringify({ before, after: await inUse() }));
