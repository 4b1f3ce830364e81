import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { createResumeGuard, type ResumeQuestion } from "mcp-resume-guard";
import { resume, storyEvents, TOKENS } from "./questions.ts";

const MIB = 1024 * 1024;

/** Of the speed of the loop, that `decide` has to have. */
const AT_LEAST = 0.5;
/** MiB that its memory may grow by, once it is warm: what a heap does between two collections. */
const GROWTH = 32;
/** The two take turns, so that both have the same machine. */
const ROUNDS = 20;

/**
 * The facts of story 1, many times: by `guard.resume` in a loop, and by `mcp-resume-guard decide` in a process of its
 * own, from JSON lines to JSON lines, in one run of it.
 */
export async function compareDecide(count: number): Promise<string> {
	const questions = TOKENS.map((token) => resume(token, storyEvents()));
	const guard = await createResumeGuard({ data: "policies/mcp/data.json" });
	const command = startDecide(questions);
	const times = Math.ceil(count / ROUNDS);
	const loop = () => {
		for (let i = 0; i < times; i++) guard.resume(questions[i % questions.length] as ResumeQuestion);
	};

	// Warm, as everything is for most of a million.
	loop();
	await command.answer(times);
	const seconds = { loop: 0, decide: 0 };
	const rss: number[] = [];
	for (let round = 0; round < ROUNDS; round++) {
		const start = performance.now();
		loop();
		const between = performance.now();
		rss.push(await command.answer(times));
		seconds.loop += (between - start) / 1000;
		seconds.decide += (performance.now() - between) / 1000;
	}
	await command.end();

	const lines = times * ROUNDS;
	const ratio = seconds.loop / seconds.decide;
	const growth = Math.max(...rss) - (rss[0] ?? 0);
	const told = Number.isNaN(growth) ? "not known here" : `+${(growth / MIB).toFixed(1)} MiB`;
	const verdict = (isGood: boolean) => (isGood ? "ok" : "NOT ok");
	return [
		`guard.resume in a loop   ${(lines / seconds.loop).toFixed(0)} decisions/s`,
		`mcp-resume-guard decide  ${(lines / seconds.decide).toFixed(0)} lines/s, of ${lines} lines`,
		`ratio                    ${ratio.toFixed(2)}, at least ${AT_LEAST}: ${verdict(ratio >= AT_LEAST)}`,
		`peak RSS, once warm      ${told}, at most +${GROWTH}: ${verdict(!(growth > GROWTH * MIB))}`,
	].join("\n");
}

interface Decide {
	/** Feeds so many lines and waits for their answers; resolves with the most memory that the process had meanwhile, NaN if nobody says. */
	answer(count: number): Promise<number>;
	end(): Promise<void>;
}

function startDecide(questions: readonly ResumeQuestion[]): Decide {
	const child = spawn(process.execPath, ["--import", "tsx", "src/cli/main.ts", "decide"], {
		stdio: ["pipe", "pipe", "inherit"],
	});
	const exited = once(child, "exit");
	const texts = questions.map((question) => `${JSON.stringify({ moment: "resume", ...question })}\n`);
	const answers: AsyncIterator<Buffer> = child.stdout[Symbol.asyncIterator]();

	return {
		async answer(count) {
			Readable.from(blocks(count, texts)).pipe(child.stdin, { end: false });
			let peak = 0;
			for (let answered = 0; answered < count; ) {
				const { done, value } = await answers.next();
				if (done) throw new Error(`decide ended after ${answered} of ${count} answers`);
				for (let at = value.indexOf(10); at !== -1; at = value.indexOf(10, at + 1)) answered += 1;
				peak = Math.max(peak, rssOf(child));
			}
			return peak;
		},
		async end() {
			child.stdin.end();
			const [exitCode] = await exited;
			if (exitCode !== 0) throw new Error(`decide ended with ${exitCode}`);
		},
	};
}

/** As `cat` would bring them: many lines in a chunk. */
function* blocks(count: number, texts: readonly string[]): Generator<Buffer> {
	const lines = (many: number) =>
		Buffer.from(Array.from({ length: many }, (_, index) => texts[index % texts.length]).join(""));
	const together = 40;
	const block = lines(together);
	for (let left = count; left > 0; left -= together) yield left < together ? lines(left) : block;
}

/** Where Linux says it. */
function rssOf({ pid }: ChildProcess): number {
	try {
		const status = readFileSync(`/proc/${pid}/status`, "utf8");
		return Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1]) * 1024;
	} catch {
		return Number.NaN;
	}
}
