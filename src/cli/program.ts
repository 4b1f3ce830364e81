import { Command, CommanderError } from "commander";
import { ResumeGuardError } from "../errors.ts";
import { jsonLine } from "../explain/index.ts";
import { packageVersion } from "../log/version.ts";
import { visible } from "../testing/text.ts";
import { registerBuild } from "./build.ts";
import { registerCheck } from "./check.ts";
import type { ExitCode, Register } from "./command.ts";
import { registerDecide } from "./decide.ts";
import { registerExplain } from "./explain.ts";
import { registerInit } from "./init.ts";
import { registerInspect } from "./inspect.ts";
import { registerReplay } from "./replay.ts";
import { type Stdio, write } from "./stdio.ts";
import { registerTest } from "./test.ts";

/** Each command registers itself, in this order of the help. */
const commands: readonly Register[] = [
	registerInit,
	registerCheck,
	registerTest,
	registerBuild,
	registerInspect,
	registerDecide,
	registerExplain,
	registerReplay,
];

const help = `
Exit code of every command: 0 yes, 1 no, 2 it could not be found out.
`;

/**
 * The command line `mcp-resume-guard`.
 *
 * @param argv the arguments, without the program
 * @returns the exit code; resolves when all that was written has gone out
 */
export async function run(argv: readonly string[], stdio: Stdio): Promise<number> {
	const { stdout, stderr } = stdio;
	let exitCode: ExitCode = 0;
	let json = false;
	// Whoever writes is told of the error, too; without a listener it would end the process.
	for (const stream of [stdout, stderr]) stream.on("error", () => {});

	const program = new Command("mcp-resume-guard")
		.description("Which events a reconnecting MCP client may be sent, decided by policy.")
		.configureOutput({
			writeOut: (text) => stdout.write(text),
			writeErr: (text) => stderr.write(inLines(text)),
		})
		.addHelpText("after", help)
		.exitOverride()
		.hook("preAction", (_, command) => {
			json = command.opts().json === true;
		});
	const shell = {
		stdio,
		exit(code: ExitCode) {
			exitCode = code;
		},
	};
	const version = await packageVersion();
	if (version !== undefined) program.version(version);
	for (const register of commands) register(program, shell);

	try {
		await program.parseAsync(argv, { from: "user" });
		return exitCode;
	} catch (error) {
		// Commander has written what it has to say: the help that was asked for, or what is wrong with the options.
		if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
		const message = messageOf(error);
		const line = jsonLine({ error: { code: codeOf(error), message } });
		if (json) await write(stdout, `${line}\n`).catch(() => {});
		stderr.write(`mcp-resume-guard: ${inLines(message)}\n`);
		return 2;
	}
}

// Arguments, names of files and cases may have anything in them; help, and what OPA says, has lines.
function inLines(text: string): string {
	return text.split("\n").map(visible).join("\n");
}

function codeOf(error: unknown): string {
	return error instanceof ResumeGuardError ? error.code : "failed";
}

function messageOf(error: unknown): string {
	if (!(error instanceof Error)) return String(error);
	return error.cause instanceof Error && !error.message.includes(error.cause.message)
		? `${error.message}: ${error.cause.message}`
		: error.message;
}
