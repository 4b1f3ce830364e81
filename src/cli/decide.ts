import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { createResumeGuard, type PolicyFault, type ResumeGuard } from "../index.ts";
import { type Line, splitLines } from "./lines.ts";
import type { Stdio } from "./stdio.ts";

export interface DecideOptions {
	/** Path of a policy; the one in this package if absent. */
	readonly policy?: string;
	/** Path of policy data; the one in this package if absent. */
	readonly data?: string;
}

const DATA = fileURLToPath(new URL("../../policies/mcp/data.json", import.meta.url));

// A resume of some 100,000 events, given one by one.
const MAX_LINE = 16 * 1024 * 1024;

/**
 * Reads facts and writes decisions, one JSON line for one and in order. As much is read ahead as comes at once, and
 * no more before its answers have gone out. Ends when the input does, or when nobody reads the answers any more.
 *
 * @returns 0, or 1 if a line was answered with an error
 * @throws {ResumeGuardError} `policy_invalid`, `data_invalid`, `file_unreadable`
 */
export async function decide(
	{ policy, data = DATA }: DecideOptions,
	{ stdin, stdout, stderr }: Stdio,
): Promise<0 | 1> {
	let line = 0;
	let exitCode: 0 | 1 = 0;
	const onFault = (fault: PolicyFault) =>
		stderr.write(`mcp-resume-guard: line ${line}: ${describe(fault)}\n`);
	const guard = await createResumeGuard({ data, onFault, ...(policy !== undefined && { policy }) });
	const answer = answererOf(guard);

	for await (const lines of splitLines(stdin, MAX_LINE)) {
		let answers = "";
		for (const given of lines) {
			line += 1;
			const decision = answer(given);
			if ("error" in decision) exitCode = 1;
			answers += `${JSON.stringify(decision)}\n`;
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

/** Resolves when the text has gone out: to `false` if nobody reads it any more. */
function write(stream: Writable, text: string): Promise<boolean> {
	return new Promise((resolve, reject) => {
		stream.write(text, (error: NodeJS.ErrnoException | null | undefined) => {
			if (error == null) resolve(true);
			else if (error.code === "EPIPE") resolve(false);
			else reject(error);
		});
	});
}
