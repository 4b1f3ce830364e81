import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A script in a process of its own that answers each line of JSON with one. */
export interface Asked<Question, Answer> {
	/** `undefined`: it does not answer, as where a mutant goes on for ever. */
	ask(question: Question): Promise<Answer | undefined>;
	close(): void;
}

/** What such a script has loaded stays loaded: after so many questions there is a new process. */
const QUESTIONS = 50;
const PATIENCE = 120_000;

export function startAsked<Question, Answer>(script: string): Asked<Question, Answer> {
	let started: ReturnType<typeof start> | undefined;

	function start() {
		const child = spawn(process.execPath, ["--import", "tsx", script], {
			stdio: ["pipe", "pipe", "inherit"],
		});
		const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
		return { child, lines, left: QUESTIONS };
	}
	function close() {
		started?.child.stdin.end();
		started = undefined;
	}

	return {
		async ask(question) {
			started ??= start();
			const { child, lines } = started;
			started.left -= 1;
			let isLate = false;
			const timer = setTimeout(() => {
				isLate = true;
				child.kill("SIGKILL");
			}, PATIENCE);
			child.stdin.write(`${JSON.stringify(question)}\n`);
			const { value, done } = await lines.next();
			clearTimeout(timer);
			if (done || started.left === 0) close();
			if (isLate) return undefined;
			if (done) throw new Error(`${script} has ended`);
			return JSON.parse(value) as Answer;
		},
		close,
	};
}
