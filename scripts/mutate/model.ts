import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Asks the model (test/model/judge.ts) whether a guard, or a policy, decides as it does. */
export interface Model {
	isSame(subject: { readonly policy: string } | { readonly guard: string }): Promise<boolean>;
	close(): void;
}

export function startModel(): Model {
	const child = spawn("npx", ["tsx", "test/model/judge.ts"], { stdio: ["pipe", "pipe", "inherit"] });
	const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
	return {
		async isSame(subject) {
			child.stdin.write(`${JSON.stringify(subject)}\n`);
			const { value, done } = await lines.next();
			if (done) throw new Error("the model has ended");
			return (JSON.parse(value) as { same: boolean }).same;
		},
		close: () => child.stdin.end(),
	};
}
