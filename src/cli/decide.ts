import type { Command } from "commander";
import { jsonLine } from "../explain/index.ts";
import type { PolicyFault, ResumeGuard } from "../index.ts";
import { visible } from "../testing/text.ts";
import type { Shell } from "./command.ts";
import { type Line, splitLines } from "./lines.ts";
import { guardOf, type RulesArguments } from "./rules.ts";
import { type Stdio, write } from "./stdio.ts";
import { addVerificationOptions, type VerificationArguments } from "./verification.ts";

// A resume of some 100,000 events, given one by one.
const MAX_LINE = 16 * 1024 * 1024;

const help = `
Standard input: facts as JSON, one object a line. Each has its moment (session,
call, resume or delivery) and what that moment asks about; claims raw or
normalised, pending events one by one or folded; without now, it is the current
time. Standard output: a line for each, in order: the decision, or
{"error": {"code": "invalid_line", "message"}} where the line is no question
(not JSON in UTF-8, no object, no moment, longer than 16 MiB).

Exit code: 0 if every line was answered with a decision, be it a refusal; 1 if
one was answered with an error; 2 if the options, the policy or its data are not
good, or input or output fail.
`;

export function registerDecide(program: Command, { stdio, exit }: Shell): void {
	addVerificationOptions(
		program
			.command("decide")
			.description("decide questions as the guard does in a host: facts in, decisions out")
			.option(
				"--policy <file>",
				"the policy, Wasm built by OPA, or a bundle (default: the one in this package)",
			)
			.option("--data <file>", "policy data (default: policies/mcp/data.json in this package)"),
	)
		.option("--skip-verify", "take a signed bundle without looking at its signature")
		.option("--json", "as always here")
		.addHelpText("after", help)
		.action(
			async ({ policy, data, ...verification }: RulesArguments & VerificationArguments & { json?: true }) =>
				exit(await decide({ policy, data, verification }, stdio)),
		);
}

/**
 * Reads facts and writes decisions, one JSON line for one and in order. As much is read ahead as comes at once, and
 * no more before its answers have gone out. Ends when the input does, or when nobody reads the answers any more.
 *
 * @returns 0, or 1 if a line was answered with an error
 * @throws {ResumeGuardError} for a policy, data or a bundle that is not good
 */
export async function decide(rules: RulesArguments, { stdin, stdout, stderr }: Stdio): Promise<0 | 1> {
	let line = 0;
	let exitCode: 0 | 1 = 0;
	const onFault = (fault: PolicyFault) =>
		stderr.write(`mcp-resume-guard: line ${line}: ${visible(describe(fault))}\n`);
	const guard = await guardOf(rules, onFault);
	const answer = answererOf(guard);

	for await (const lines of splitLines(stdin, MAX_LINE)) {
		let answers = "";
		for (const given of lines) {
			line += 1;
			const decision = answer(given);
			if ("error" in decision) exitCode = 1;
			answers += `${jsonLine(decision)}\n`;
		}
		if (!(await write(stdout, answers))) break;
	}
	return exitCode;
}

interface LineError {
	readonly error: { readonly code: "invalid_line"; readonly message: string };
}

function answererOf({ session, call, resume, delivery }: ResumeGuard): (line: Line) => object | LineError {
	// A Map, as the name comes from outside.
	const moments = new Map<unknown, (question: never) => object>(
		Object.entries({ session, call, resume, delivery }),
	);
	const expected = `no moment: one of ${[...moments.keys()].join(", ")}`;

	return (line) => {
		if ("problem" in line) return invalid(line.problem);
		let question: unknown;
		try {
			question = JSON.parse(line.text);
		} catch {
			// What JSON.parse says has a part of the line in it, which may be claims.
			return invalid("not JSON");
		}
		if (typeof question !== "object" || question === null || Array.isArray(question)) {
			return invalid("not an object");
		}
		const decide = moments.get((question as { moment?: unknown }).moment);
		// The guard looks at all that it is asked.
		return decide === undefined ? invalid(expected) : decide(question as never);
	};
}

function invalid(message: string): LineError {
	return { error: { code: "invalid_line", message } };
}

function describe({ moment, reason, cause }: PolicyFault): string {
	const why = cause instanceof Error ? cause.message : cause && JSON.stringify(cause);
	return `policy_fault at ${moment}: ${reason}${why ? `: ${why}` : ""}`;
}
