import { deepStrictEqual } from "node:assert";
import { readData } from "../../src/data.ts";
import { readFacts } from "../../src/facts.ts";
import { listTools } from "../questions.ts";
import { facts } from "./first/facts.ts";
import type { FirstDecision } from "./first/report.ts";
import { startOpaServer } from "./opa-server.ts";
import { runScript } from "./scripts.ts";
import { median } from "./turns.ts";

const PROCESSES = 10;

const SCRIPTS = {
	guard: "first/guard",
	"floor, opa-wasm alone": "first/floor",
	Cedar: "first/cedar",
	"plain TypeScript": "first/plain",
} as const;

export const FIRST_DECISIONS: readonly string[] = Object.values(SCRIPTS);

/** Milliseconds. */
interface Start {
	/** From the call that loads it to the decision; there is none where it is a server. */
	readonly fromCall?: number;
	readonly fromProcess: number;
}

/** The first `session` decision of a new process, in turns. */
export async function compareColdStarts(opa: string): Promise<string> {
	const reading = readFacts("session", listTools("narrow"), await readData("policies/mcp/data.json"));
	deepStrictEqual({ facts }, reading);

	const contenders: { name: string; start: () => Promise<Start> }[] = [
		...Object.entries(SCRIPTS).map(([name, script]) => ({ name, start: () => startScript(script) })),
		{ name: "OPA server", start: () => startServer(opa) },
	];
	const starts = new Map<string, Start[]>(contenders.map(({ name }) => [name, []]));
	for (let process = 0; process < PROCESSES; process += 1) {
		for (const { name, start } of contenders) starts.get(name)?.push(await start());
	}
	const guard = starts.get("guard") ?? [];
	return [
		row(`first decision, median of ${PROCESSES}`, "from the call", "", "from its spawn", ""),
		...[...starts].map(([name, own]) =>
			row(name, ...cells(own, guard, "fromCall"), ...cells(own, guard, "fromProcess")),
		),
	].join("\n");
}

async function startScript(script: string): Promise<Start> {
	const spawned = Date.now();
	const { took, at } = JSON.parse(await runScript(script)) as FirstDecision;
	return { fromCall: took, fromProcess: at - spawned };
}

async function startServer(opa: string): Promise<Start> {
	const spawned = Date.now();
	const server = await startOpaServer(opa);
	try {
		if ((await server.decide(facts)) === undefined) throw new Error("no decision");
		return { fromProcess: Date.now() - spawned };
	} finally {
		await server.close();
	}
}

function cells(own: readonly Start[], guard: readonly Start[], from: keyof Start): [string, string] {
	const times = own.map((start) => start[from] ?? Number.NaN);
	if (times.some(Number.isNaN)) return ["", ""];
	// By turn: both have met the same machine.
	const ratio = median(times.map((time, turn) => time / (guard[turn]?.[from] ?? Number.NaN)));
	return [`${median(times).toFixed(1)} ms`, own === guard ? "" : `${ratio.toFixed(2)} × the guard`];
}

function row(name: string, call: string, callRatio: string, process: string, processRatio: string): string {
	return [name.padEnd(28), call.padStart(14), callRatio.padEnd(17), process.padStart(16), processRatio]
		.join("  ")
		.trimEnd();
}
