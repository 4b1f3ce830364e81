import { readFile, writeFile } from "node:fs/promises";
import { loadPolicy as loadFloor } from "@open-policy-agent/opa-wasm";
import { createResumeGuard, type EventInput, type Facts, type Moment } from "mcp-resume-guard";
import { readFacts } from "../../src/facts.ts";
import { loadPolicy } from "../../src/policy.ts";
import { listTools, resume, storyEvents, TOKENS } from "../questions.ts";
import { createCedar } from "./cedar.ts";
import { startOpaServer } from "./opa-server.ts";
import { assertSame, createPlain } from "./plain.ts";
import { type Line, plot } from "./plot.ts";
import { type Contender, median, takeTurns } from "./turns.ts";

const DATA = "policies/mcp/data.json";
const ROUNDS = 15;
/** Calls of OPA's server and of Cedar, in calls of the guard: at least so many. */
const AT_LEAST = { "OPA server": 15, Cedar: 8 } as const;
const FLOOR_AT_MOST = 2;
/** Pending events. */
const COUNTS = [1, 10, 100, 1_000, 10_000];
/** One event costs Cedar an authorization, so that more are a matter of multiplication. */
const CEDAR_UP_TO = 1_000;

interface Subject {
	readonly name: string;
	readonly contenders: readonly Contender[];
}

// `node decisions.mjs OPA PLOT`: prints the table, writes the plot.

const [opaPath = "", plotFile = ""] = process.argv.slice(2);
const guard = await createResumeGuard({ data: DATA });
const policy = await loadPolicy(undefined, guard.data);
const floor = await loadFloor(await readFile("bench/floor.wasm"));
const cedar = createCedar(guard.data);
const plain = createPlain(guard.data);
const opa = await startOpaServer(opaPath);
try {
	const subjects = subjectsOf();
	await assertAlike(subjects);
	for (const { name, contenders } of subjects) {
		for (const row of rowsOf(name, contenders, await takeTurns(contenders, ROUNDS))) console.log(row);
	}
	const lines = await costs();
	await writeFile(plotFile, plot("Cost of a resume decision, wide token", lines));
	console.log(["", ...lines.map(lineText), "", `plot: ${plotFile}`].join("\n"));
} finally {
	await opa.close();
}

function factsOf(moment: Moment, question: unknown): Facts {
	const reading = readFacts(moment, question, guard.data);
	if ("problem" in reading) throw new Error(reading.problem.detail);
	return reading.facts;
}

function subjectsOf(): Subject[] {
	const story = storyEvents();
	const sessions = TOKENS.map((token): Subject => {
		const question = listTools(token);
		const facts = factsOf("session", question);
		const text = JSON.stringify(facts);
		assertSame(guard.session(question), plain.session(question));
		return {
			name: `session, ${token} token`,
			contenders: [
				{ name: "guard", run: () => guard.session(question) },
				{ name: "its policy alone", run: () => policy.evaluate("session", text) },
				{ name: "floor", run: () => floor.evaluate(facts, "floor/session") },
				{ name: "OPA server", run: () => opa.decide(facts) },
				{ name: "Cedar", run: () => cedar.session(facts) },
				{ name: "plain TypeScript", run: () => plain.session(question) },
			],
		};
	});
	const resumes = TOKENS.map((token): Subject => {
		const question = resume(token, story);
		const facts = factsOf("resume", question);
		const text = JSON.stringify(facts);
		assertSame(guard.resume(question), plain.resume(question));
		return {
			name: `story 1, ${token} token`,
			contenders: [
				{ name: "guard", run: () => guard.resume(question) },
				{ name: "its policy alone", run: () => policy.evaluate("resume", text) },
				{ name: "floor", run: () => floor.evaluate(facts, `floor/${token}`) },
				{ name: "OPA server", run: () => opa.decide(facts) },
				{ name: "Cedar", run: () => cedar.resume(facts, story) },
				{ name: "plain TypeScript", run: () => plain.resume(question) },
			],
		};
	});
	return [...sessions, ...resumes];
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
			cells[1]?.padEnd(16),
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
	if (name === "its policy alone") return `${ratio.toFixed(2)} of the guard: the rest is the adapter`;
	if (name === "plain TypeScript") return `guard ${(1 / ratio).toFixed(1)} × plain TypeScript`;
	const target = Object.entries(AT_LEAST).find(([other]) => other === name)?.[1];
	if (target === undefined) return "";
	return `${ratio.toFixed(1)} × the guard (≥ ${target}: ${ratio >= target ? "ok" : "NOT ok"})`;
}

async function costs(): Promise<Line[]> {
	const lines: Line[] = [];
	const labels = {
		"guard, 1 label": () => 1,
		"guard, 4 labels": () => 4,
		"guard, a label for each event": (n: number) => n,
	};
	for (const [name, count] of Object.entries(labels)) {
		const line = await lineOf(name, COUNTS, 5, (n) => {
			const question = resume("wide", labelled(n, count(n)));
			assertSame(guard.resume(question), plain.resume(question));
			return () => guard.resume(question);
		});
		lines.push(line);
	}
	const upTo = COUNTS.filter((count) => count <= CEDAR_UP_TO);
	const ofCedar = await lineOf("Cedar, an authorization for each event", upTo, 3, (n) => {
		const events = labelled(n, 1);
		const facts = factsOf("resume", resume("wide", events));
		return () => cedar.resume(facts, events);
	});
	const ofPlain = await lineOf("plain TypeScript, each event by itself", COUNTS, 5, (n) => {
		const question = resume("wide", labelled(n, 1));
		return () => plain.resume(question);
	});
	return [...lines, ofCedar, ofPlain];
}

async function lineOf(
	name: string,
	counts: readonly number[],
	rounds: number,
	prepare: (count: number) => () => unknown,
): Promise<Line> {
	const points: (readonly [number, number])[] = [];
	for (const n of counts) {
		const [times = []] = await takeTurns([{ name, run: prepare(n) }], rounds);
		points.push([n, median(times)]);
	}
	return { name, points };
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
	return `${name}: ${points.map(([n, time]) => `${n} → ${time.toFixed(time < 10 ? 1 : 0)} µs`).join(", ")}`;
}
