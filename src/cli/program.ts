import { Command, CommanderError } from "commander";
import { decide } from "./decide.ts";
import type { Stdio } from "./stdio.ts";

const decideHelp = `
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

/**
 * The command line `mcp-resume-guard`.
 *
 * @param argv the arguments, without the program
 * @returns the exit code; resolves when all that was written has gone out
 */
export async function run(argv: readonly string[], stdio: Stdio): Promise<number> {
	const { stdout, stderr } = stdio;
	let exitCode = 0;
	// Whoever writes is told of the error, too; without a listener it would end the process.
	for (const stream of [stdout, stderr]) stream.on("error", () => {});

	const program = new Command("mcp-resume-guard")
		.description("Which events a reconnecting MCP client may be sent, decided by policy.")
		.configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
		.exitOverride();
	program
		.command("decide")
		.description("decide questions as the guard does in a host: facts in, decisions out")
		.option("--policy <file>", "the policy, Wasm built by OPA (default: the one in this package)")
		.option("--data <file>", "policy data (default: policies/mcp/data.json in this package)")
		.addHelpText("after", decideHelp)
		.action(async (options: { policy?: string; data?: string }) => {
			exitCode = await decide(options, stdio);
		});

	try {
		await program.parseAsync(argv, { from: "user" });
		return exitCode;
	} catch (error) {
		// Commander has written what it has to say: the help that was asked for, or what is wrong with the options.
		if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
		stderr.write(`mcp-resume-guard: ${messageOf(error)}\n`);
		return 2;
	}
}

function messageOf(error: unknown): string {
	if (!(error instanceof Error)) return String(error);
	return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
