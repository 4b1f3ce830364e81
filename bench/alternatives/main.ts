import { readFile, writeFile } from "node:fs/promises";
import { loadPolicy } from "@open-policy-agent/opa-wasm";
import {
	createResumeGuard,
	type EventInput,
	type Facts,
	type Moment,
	type PolicyData,
} from "mcp-resume-guard";
import { readFacts } from "../../src/facts.ts";
import { listTools, resume, storyEvents, TOKENS } from "../questions.ts";
import { createCedar } from "./cedar.ts";
import { startOpaServer } from "./opa-server.ts";
import { type Line, plot } from "./plot.ts";
import { type Contender, median, takeTurns } from "./turns.ts";

const DATA = "policies/mcp/data.json";
const ROUNDS = 15;
/** Calls of OPA's server and of Cedar, in calls of the guard: at least so many. */
const AT_LEAST = { "OPA server": 15, Cedar: 8 } as const;
const FLOOR_AT_MOST = 2;

interface Subject {
	readonly name: string;
	readonly contenders: readonly Contender[];
}

/**
 * The same decisions by this guard, by what people would pick instead, and by the floor of the technique (a policy that
 * answers the same constant through plain opa-wasm), in one run. Writes the plot beside the table.
 */
export async function compareAlternatives(plotFile: string): Promise<string> {
	const guard = await createResumeGuard({ data: DATA });
	const floor = await loadPolicy(await readFile("bench/floor.wasm"));
	const cedar = createCedar(JSON.parse(await readFile(DATA, "utf8")) as PolicyData);
	const opa = await startOpaServer();

	function factsOf(moment: Moment, question: unknown): Facts {
		const reading = readFacts(moment, question, guard.data);
		if ("problem" in reading) throw new Error(reading.problem.detail);
		return reading.facts;
	}

	try {
		const story = storyEvents();
		const subjects: Subject[] = [];
		for (const token of TOKENS) {
			const session = listTools(token);
			const sessionFacts = factsOf("session", session);
			subjects.push({
				name: `session, ${token} token`,
				contenders: [
					{ name: "guard", run: () => guard.session(session) },
					{ name: "floor", run: () => floor.evaluate(sessionFacts, "floor/session") },
					{ name: "OPA server", run: () => opa.decide(sessionFacts) },
					{ name: "Cedar", run: () => cedar.session(sessionFacts) },
				],
			});
		}
		for (const token of TOKENS) {
			const question = resume(token, story);
			const facts = factsOf("resume", question);
			subjects.push({
				name: `story 1, ${token} token`,
				contenders: [
					{ name: "guard", run: () => guard.resume(question) },
					{ name: "floor", run: () => floor.evaluate(facts, `floor/${token}`) },
					{ name: "OPA server", run: () => opa.decide(facts) },
					{ name: "Cedar", run: () => cedar.resume(facts, story) },
				],
			});
		}
		await assertAlike(subjects);
		const table: string[] = [];
		for (const { name, contenders } of subjects) {
			const times = await takeTurns(contenders, ROUNDS);
			table.push(...rowsOf(name, contenders, times));
		}

		const lines = await costs((token, events) => resume(token, events), guard, cedar, factsOf);
		await writeFile(plotFile, plot("Cost of a resume decision, wide token", lines));
		return [...table, "", ...lines.map(lineText), "", `plot: ${plotFile}`].join("\n");
	} finally {
		await opa.close();
	}
}

// Nobody is compared who answers something else.
async function assertAlike(subjects: readonly Subject[]): Promise<void> {
	for (const { name, contenders } of subjects) {
		const answers = await Promise.all(contenders.map(async ({ run }) => letsThrough(await run())));
		if (new Set(answers).size > 1) throw new Error(`${name}: ${answers.join(", ")}`);
	}
}

function letsThrough(answer: unknown): boolean {
	if (typeof answer === "boolean") return answer;
	if (typeof answer === "number") return answer > 0;
	const [first] = [answer].flat() as { outcome?: string; result?: { outcome?: string } }[];
	return (first?.result ?? first)?.outcome === "proceed";
}

function rowsOf(name: string, contenders: readonly Contender[], times: readonly number[][]): string[] {
	const guard = times[0] ?? [];
	return contenders.map((contender, index) => {
		const own = times[index] ?? [];
		// By round: both have met the same machine.
		const ratio = median(own.map((time, round) => time / (guard[round] ?? Number.NaN)));
		const cells = [index === 0 ? name : "", contender.name, `${median(own).toFixed(1)} µs`];
		return [
			cells[0]?.padEnd(24),
			cells[1]?.padEnd(12),
			cells[2]?.padStart(12),
			verdict(contender.name, ratio),
		]
			.join("  ")
			.trimEnd();
	});
}

function verdict(name: string, ratio: number): string {
	if (name === "floor") {
		const times = 1 / ratio;
		return `guard ${times.toFixed(2)} × the floor (≤ ${FLOOR_AT_MOST}: ${times <= FLOOR_AT_MOST ? "ok" : "NOT ok"})`;
	}
	const target = Object.entries(AT_LEAST).find(([other]) => other === name)?.[1];
	if (target === undefined) return "";
	return `${ratio.toFixed(1)} × the guard (≥ ${target}: ${ratio >= target ? "ok" : "NOT ok"})`;
}

const COUNTS = [1, 10, 100, 1_000, 10_000];
/** One event costs Cedar an authorization, so that more are a matter of multiplication. */
const CEDAR_UP_TO = 1_000;

async function costs(
	ask: (
		token: "wide",
		events: EventInput[],
	) => Parameters<Awaited<ReturnType<typeof createResumeGuard>>["resume"]>[0],
	guard: Awaited<ReturnType<typeof createResumeGuard>>,
	cedar: ReturnType<typeof createCedar>,
	factsOf: (moment: Moment, question: unknown) => Facts,
): Promise<Line[]> {
	const lines: Line[] = [];
	const labels = {
		"guard, 1 label": () => 1,
		"guard, 4 labels": () => 4,
		"guard, a label for each event": (n: number) => n,
	};
	for (const [name, count] of Object.entries(labels)) {
		const points: (readonly [number, number])[] = [];
		for (const n of COUNTS) {
			const question = ask("wide", labelled(n, count(n)));
			const [times = []] = await takeTurns([{ name, run: () => guard.resume(question) }], 5);
			points.push([n, median(times)]);
		}
		lines.push({ name, points });
	}
	const points: (readonly [number, number])[] = [];
	for (const n of COUNTS.filter((count) => count <= CEDAR_UP_TO)) {
		const events = labelled(n, 1);
		const facts = factsOf("resume", ask("wide", events));
		const [times = []] = await takeTurns([{ name: "Cedar", run: () => cedar.resume(facts, events) }], 3);
		points.push([n, median(times)]);
	}
	return [...lines, { name: "Cedar, an authorization for each event", points }];
}

/** Events whose labels alternate. */
function labelled(count: number, labels: number): EventInput[] {
	return Array.from({ length: count }, (_, index) => ({
		id: String(42 + index),
		tool: index % labels === 0 ? "search" : `tool-${index % labels}`,
		aud: ["https://mcp.example.com/tools/search"],
		scope: [],
	}));
}

function lineText({ name, points }: Line): string {
	return `${name}: ${points.map(([n, time]) => `${n} → ${time.toFixed(0)} µs`).join(", ")}`;
}
