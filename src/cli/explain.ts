import type { Readable } from "node:stream";
import type { Command } from "commander";
import {
	type Explanation,
	explain,
	jsonLine,
	type LoggedDecision,
	quote,
	renderHtml,
	renderText,
	visible,
	wrap,
} from "../explain/index.ts";
import type { PolicyFault } from "../index.ts";
import { parseJson } from "../nesting.ts";
import { MOMENTS, type Moment } from "../policy.ts";
import type { ExitCode, Shell } from "./command.ts";
import { looksLikeRecord, readRecord } from "./decision-record.ts";
import { readBytes, writeTo } from "./files.ts";
import { guardOf, type RulesArguments } from "./rules.ts";
import { type Stdio, write } from "./stdio.ts";
import { terminalOf } from "./terminal.ts";
import { addVerificationOptions, type VerificationArguments } from "./verification.ts";

export interface ExplainOptions extends RulesArguments {
	readonly json?: boolean | undefined;
	/** Where to write it as a page. */
	readonly html?: string | undefined;
}

/** As long as a line of `decide` may be. */
const LONGEST = 16 * 1024 * 1024;

const help = `
FILE, or standard input: one question as decide takes it, or one record of a
decision log (the record's facts are decided again, and the answer is compared
with the record's). Standard output: the verdict, the events as a strip, the
session's claims against the token's, the decision table row by row, and what
token would get further. What is told is asked of the policy itself, by more
questions.

Exit code: 0 if it is explained; 1 if the explanation and the decision do not
agree, or the record says something else, which the explanation then says; 2 if
there is no one question, or the options, the policy or its data are not good.
`;

export function registerExplain(program: Command, { stdio, exit }: Shell): void {
	addVerificationOptions(
		program
			.command("explain")
			.description("explain one decision to a person")
			.argument("[file]", "the question, or the record of a decision log (default: standard input)")
			.option(
				"--policy <file>",
				"the policy, Wasm built by OPA, or a bundle (default: the one in this package)",
			)
			.option("--data <file>", "policy data (default: policies/mcp/data.json in this package)"),
	)
		.option("--skip-verify", "take a signed bundle without looking at its signature")
		.option("--html <out>", "write it as one self-contained page, too")
		.option("--json", "the explanation as data")
		.addHelpText("after", help)
		.action(
			async (
				file: string | undefined,
				{ policy, data, html, json, ...verification }: ExplainOptions & VerificationArguments,
			) => exit(await explainCommand(file, { policy, data, html, json, verification }, stdio)),
		);
}

/**
 * Explains one decision.
 *
 * @returns 0, or 1 if the explanation does not agree with the decision or the record
 * @throws {ResumeGuardError} `policy_invalid`, `data_invalid`, `file_unreadable`
 * @throws {Error} if there is not one question
 */
export async function explainCommand(
	file: string | undefined,
	{ json = false, html, ...rules }: ExplainOptions,
	{ stdin, stdout, stderr }: Stdio,
): Promise<ExitCode> {
	const { moment, question, record } = await readQuestion(file, stdin);
	const faults: string[] = [];
	const onFault = ({ reason, cause }: PolicyFault) => faults.push(reasonOf(reason, cause));
	const guard = await guardOf(rules, onFault);
	let explanation: Explanation;
	try {
		explanation = explain(guard, moment, question as never, record);
	} finally {
		guard.close();
	}
	// The first question is the one that was asked.
	const [fault] = explanation.decision.code === "policy_fault" ? faults : [];
	if (fault !== undefined) stderr.write(`mcp-resume-guard: policy_fault: ${visible(fault)}\n`);
	if (html !== undefined) await writeTo(html, renderHtml(explanation), 0o600);
	const by = revisionElsewhere(record, explanation, rules);
	const note =
		by === undefined
			? undefined
			: `decided by revision ${quote(by, 100)}; this is the policy and data of this package: give --policy or --data`;
	if (json) {
		if (note !== undefined) stderr.write(`mcp-resume-guard: ${note}\n`);
		await write(stdout, `${jsonLine(explanation)}\n`);
	} else {
		const terminal = terminalOf(stdout);
		const first = note === undefined ? "" : `${wrap(note, terminal.width).join("\n")}\n\n`;
		await write(stdout, first + renderText(explanation, terminal));
	}
	return explanation.disagreements.length === 0 ? 0 : 1;
}

/** The revision of a record that was decided by others than those that are taken where none are given. */
function revisionElsewhere(
	record: LoggedDecision | undefined,
	{ revision }: Explanation,
	{ policy, data }: RulesArguments,
): string | undefined {
	const isGiven = policy !== undefined || data !== undefined;
	return isGiven || record?.revision === revision ? undefined : record?.revision;
}

function reasonOf(reason: string, cause: unknown): string {
	return cause instanceof Error ? `${reason}: ${cause.message}` : reason;
}

interface Asked {
	readonly moment: Moment;
	readonly question: object;
	readonly record?: LoggedDecision;
}

async function readQuestion(file: string | undefined, stdin: Readable): Promise<Asked> {
	const value = parse(
		await readAll(file === undefined || file === "-" ? stdin : readBytes(file, "the question")),
	);
	if (!looksLikeRecord(value)) {
		const { moment, ...question } = value;
		if (!MOMENTS.includes(moment as Moment)) throw new Error(`no moment: one of ${MOMENTS.join(", ")}`);
		return { moment: moment as Moment, question };
	}
	const read = readRecord(value);
	switch (read.kind) {
		case "problem":
			throw new Error(`no record of a decision log: ${read.problem}`);
		case "other":
			throw new Error("the record is of another policy's decision");
		case "shadow":
			throw new Error("the record is of a shadow decision: explain that of the decision itself");
		case "not_replayable":
			throw new Error(`the record cannot be decided again: ${read.reason}`);
		case "not_asked":
		case "decision": {
			const { moment, question, result, id, timestamp, revision } = read;
			const record = {
				...(id !== undefined && { decision_id: id }),
				...(timestamp !== undefined && { timestamp }),
				...(revision !== undefined && { revision }),
				decision: result,
			};
			return { moment, question, record };
		}
	}
}

async function readAll(stream: AsyncIterable<Uint8Array | string>): Promise<string> {
	const chunks: Buffer[] = [];
	let length = 0;
	for await (const chunk of stream) {
		const bytes = Buffer.from(chunk);
		length += bytes.length;
		if (length > LONGEST) throw new Error(`the question is longer than ${LONGEST} bytes`);
		chunks.push(bytes);
	}
	try {
		return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
	} catch {
		throw new Error("the question is not UTF-8");
	}
}

function parse(text: string): Record<string, unknown> {
	let value: unknown;
	try {
		value = parseJson(text);
	} catch {
		// What JSON.parse says has a part of the text in it, which may be claims.
		throw new Error(
			"not one JSON object, or nested too deep: explain takes one question, or one record of a decision log",
		);
	}
	if (typeof value !== "object" || value === null || Array.isArray(value)) {
		throw new Error("not a JSON object: explain takes one question, or one record of a decision log");
	}
	return value as Record<string, unknown>;
}
