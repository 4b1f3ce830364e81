import type { Readable } from "node:stream";
import { type Command, InvalidArgumentError } from "commander";
import { jsonLine } from "../explain/index.ts";
import type { Decision, PolicyFault, ResumeGuard } from "../index.ts";
import { changeOf, deliveredBy } from "./changes.ts";
import type { ExitCode, Shell } from "./command.ts";
import { readRecord, whyUndecided } from "./decision-record.ts";
import { readBytes } from "./files.ts";
import { type LogEntry, readLog } from "./log-entries.ts";
import { createReport, type Report, renderReport } from "./replay-report.ts";
import { guardOf, type RulesArguments } from "./rules.ts";
import { type Stdio, write } from "./stdio.ts";
import { terminalOf } from "./terminal.ts";
import { addVerificationOptions, type VerificationArguments } from "./verification.ts";

export interface ReplayOptions extends RulesArguments {
	readonly json?: boolean | undefined;
	/** Examples of each change. */
	readonly limit?: number | undefined;
}

const help = `
LOG: a decision log, as JSON lines or as arrays as OPA's decision-log API gets
them, compressed with gzip or not; "-": standard input. Each decision's facts
are decided again by the candidate, at the time that is in them. Standard
output: what changes, by code, worst first: what was refused and would pass,
what would be delivered beyond, sessions that ended and would be kept; then the
reverse.

Exit code: 0 if every decision of the log was decided again, and nothing that
was refused would pass or be delivered; 1 if something would; 2 if that cannot
be said: no decision in the log, entries that cannot be read, decisions whose
facts were erased by masking or that the candidate cannot decide
(invalid_facts, policy_fault), or a candidate that is not good.
`;

const EXAMPLES = 5;

export function registerReplay(program: Command, { stdio, exit }: Shell): void {
	addVerificationOptions(
		program
			.command("replay")
			.description("decide a decision log again under a candidate: what would change, worst first")
			.argument("<log>", 'the decision log ("-": standard input)')
			.option("--policy <file>", "the candidate's policy or bundle (default: the policy in this package)")
			.option("--data <file>", "the candidate's data (default: policies/mcp/data.json in this package)"),
	)
		.option("--skip-verify", "take a signed bundle without looking at its signature")
		.option("--limit <n>", "examples of each change", readLimit, EXAMPLES)
		.option("--json", "the changes as data")
		.addHelpText("after", help)
		.action(
			async (
				log: string,
				{ policy, data, json, limit, ...verification }: ReplayOptions & VerificationArguments,
			) => exit(await replay(log, { policy, data, json, limit, verification }, stdio)),
		);
}

function readLimit(text: string): number {
	if (!/^\d{1,4}$/.test(text)) throw new InvalidArgumentError("a number from 0 to 9999");
	return Number(text);
}

/**
 * Decides a log again under a candidate. Memory does not grow with the log.
 *
 * @returns 0: all of it was decided again, and nothing widens; 1: something does; 2: it cannot be said
 * @throws {ResumeGuardError} for a candidate that is not good
 * @throws {TypeError} without a candidate
 */
export async function replay(
	log: string,
	{ json = false, limit = EXAMPLES, ...rules }: ReplayOptions,
	{ stdin, stdout }: Stdio,
): Promise<ExitCode> {
	if (rules.policy === undefined && rules.data === undefined) {
		throw new TypeError("replay needs a candidate: --policy, --data or both");
	}
	let faults = 0;
	let firstFault: string | undefined;
	const onFault = ({ reason, cause }: PolicyFault) => {
		faults += 1;
		firstFault ??= cause instanceof Error ? `${reason}: ${cause.message}` : reason;
	};
	const guard = await guardOf(rules, onFault);
	const report = createReport(limit);
	try {
		for await (const entries of readLog(bytesOf(log, stdin))) {
			for (const entry of entries) replayOne(entry, guard, report);
		}
	} finally {
		guard.close();
	}
	const result = report.finish({
		revision: guard.revision,
		identityClaims: guard.data.identity_claims,
		faults,
		...(firstFault !== undefined && { firstFault }),
	});
	await write(stdout, json ? `${jsonLine(result)}\n` : renderReport(result, terminalOf(stdout)));
	return result.exit;
}

function bytesOf(log: string, stdin: Readable): AsyncIterable<Uint8Array> {
	return log === "-" ? stdin : readBytes(log, "the log");
}

function replayOne(entry: LogEntry, guard: ResumeGuard, report: Report): void {
	const { place } = entry;
	const read =
		"problem" in entry ? { kind: "problem" as const, problem: entry.problem } : readEntry(entry.text);
	if (read.kind === "problem") report.unreadable(place, read.problem);
	else if (read.kind === "not_replayable") report.notReplayable(read.id ?? place, read.reason);
	else if (read.kind !== "decision") report.passedOver(read.kind);
	else {
		const { moment, question, result, isWhole, revision, id } = read;
		const after: Decision = guard.probe[moment](question as never);
		const undecided = whyUndecided(result, after);
		if (undecided !== undefined) {
			report.notReplayable(id ?? place, undecided);
			return;
		}
		report.replayed({
			name: id ?? place,
			before: result,
			after,
			changed: changeOf(result, after, isWhole),
			events: deliveredBy(after) - deliveredBy(result),
			isSameRevision: revision === guard.revision,
			claims: claimsOf(question),
		});
	}
}

function readEntry(text: string): ReturnType<typeof readRecord> {
	try {
		return readRecord(JSON.parse(text));
	} catch {
		// What JSON.parse says has a part of the line in it, which may be claims.
		return { kind: "problem", problem: "not JSON" };
	}
}

/** The names of all claims that are recorded or presented. */
function claimsOf(question: Readonly<Record<string, unknown>>): readonly string[] {
	const { presented, session } = question as {
		presented?: object;
		session?: { readonly binding?: object };
	};
	return [...Object.keys(presented ?? {}), ...Object.keys(session?.binding ?? {})];
}
