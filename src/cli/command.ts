import type { Command } from "commander";
import type { Stdio } from "./stdio.ts";

/** 0: yes, 1: no, 2: could not. */
export type ExitCode = 0 | 1 | 2;

/** What a command works with. */
export interface Shell {
	readonly stdio: Stdio;
	/** Says how the process ends; the last one counts. */
	exit(code: ExitCode): void;
}

/** Adds a command, its options and what it does to the program. */
export type Register = (program: Command, shell: Shell) => void;
