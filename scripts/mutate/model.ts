import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Asks the model (test/model/judge.ts) whether a guard, or a policy, decides as it does. */
export interface Model {
	isSame(subject: { readonly policy: string } | { readonly guard: string }): Promise<boolean>;
	close(): void;
}

/** What it has loaded stays loaded: after so many questions there is a new process. */
const QUESTIONS = 50;

export function startModel(): Model {
	let started: { child: ChildProcess; lines: AsyncIterator<string>; left: number } | undefined;

	function start() {
		const child = spawn("npx", ["tsx", "test/model/judge.ts"], { stdio: ["pipe", "pipe", "inherit"] });
		const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
		started = { child, lines, left: QUESTIONS };
		return started;
	}
	function close() {
		started?.child.stdin?.end();
		started = undefined;
	}

	return {
		async isSame(subject) {
			const model = started ?? start();
			model.left -= 1;
			model.child.stdin?.write(`${JSON.stringify(subject)}\n`);
			const { value, done } = await model.lines.next();
			if (done) throw new Error("the model has ended");
			if (model.left === 0) close();
			return (JSON.parse(value) as { same: boolean }).same;
		},
		close,
	};
}
