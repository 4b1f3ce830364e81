import type { Command } from "commander";
import { ResumeGuardError } from "../errors.ts";
import { jsonLine } from "../explain/index.ts";
import { MOMENTS } from "../policy.ts";
import { readCases } from "../tables.ts";
import { compare, type Paint } from "../testing/compare.ts";
import { type CodeCoverage, coverageOfCodes } from "../testing/coverage.ts";
import { createRunner, type RunResult } from "../testing/run.ts";
import { visible } from "../testing/text.ts";
import type { Shell } from "./command.ts";
import { writeTo } from "./files.ts";
import { type JunitCase, junitOf } from "./junit.ts";
import { findOpa, GET_OPA } from "./opa.ts";
import {
	compilePolicyFolder,
	type PolicyFolder,
	readPolicyData,
	readPolicyFolder,
	readTablesOf,
	regoTests,
} from "./policy-folder.ts";
import { type RegoResult, type RegoRun, runRegoTests } from "./rego-tests.ts";
import { write } from "./stdio.ts";
import { type Style, styleOf } from "./style.ts";
import { terminalOf } from "./terminal.ts";

const help = `
Decides each case of the decision tables (tests/*.json) by the Wasm and the data
that would ship, and compares what is wanted of the decision. Runs the folder's
own Rego tests where OPA is found, and says on standard error if it is not.

Coverage says which codes of the policy no case has led to, at which moment, and
which lines of the folder's own Rego its Rego tests have not reached.

Exit code: 0 if every test passed; 1 if one failed, or with --require-coverage
if a code or a line is not reached; 2 if the policy, the data or a table is not
good, OPA is needed and missing, or there is no case at all.
`;

export interface TestOptions {
	readonly junit?: string;
	readonly coverage?: true;
	readonly requireCoverage?: true;
	readonly filter?: string;
	readonly json?: true;
}

export function registerTest(program: Command, { stdio, exit }: Shell): void {
	program
		.command("test")
		.description("run the decision tables and Rego tests of a policy folder")
		.argument("<dir>", "the policy folder")
		.option("--junit <file>", "write the results as JUnit XML, too")
		.option("--coverage", "say what the tests did not reach")
		.option("--require-coverage", "fail if there is something that the tests did not reach")
		.option(
			"--filter <text>",
			"only cases with this in `<table>: <name>`, and Rego tests in `<package>.<name>`",
		)
		.option("--json", "write the results as one JSON object")
		.addHelpText("after", help)
		.action(async (dir: string, options: TestOptions) => {
			const report = await test(dir, options);
			for (const { what, why } of report.left_out) {
				stdio.stderr.write(`mcp-resume-guard: left out: ${visible(what)}: ${visible(why)}\n`);
			}
			if (options.junit !== undefined) await writeTo(options.junit, junitOf(suitesOf(report)));
			const { width } = terminalOf(stdio.stdout);
			const text = options.json
				? `${jsonLine(report)}\n`
				: textOf(report, styleOf(stdio.stdout), Math.max(width, WIDTH));
			await write(stdio.stdout, text);
			exit(report.ok ? 0 : 1);
		});
}

/** Three columns need this much. */
const WIDTH = 120;

export interface TestReport {
	readonly ok: boolean;
	readonly passed: number;
	readonly failed: number;
	readonly cases: readonly (RunResult & { readonly time: number })[];
	readonly rego: RegoRun;
	/** Of the codes of the policy and of the folder's own rules. */
	readonly coverage?: CodeCoverage;
	/** What could not be run. */
	readonly left_out: readonly { readonly what: string; readonly why: string }[];
}

/**
 * @throws {ResumeGuardError} `file_unreadable`, `data_invalid`, `table_invalid` (no case at all, too),
 *   `policy_invalid`, `opa_missing`
 */
export async function test(
	dir: string,
	{ coverage: isAsked, requireCoverage, filter = "" }: TestOptions = {},
): Promise<TestReport> {
	const isMeasured = isAsked === true || requireCoverage === true;
	const folder = await readPolicyFolder(dir);
	const all = await readCases(readTablesOf(folder), await readPolicyData(folder));
	const cases = all.filter(({ name }) => name.includes(filter));
	const opa = await findOpa();
	const run = createRunner(await WebAssembly.compile(await compilePolicyFolder(folder, opa)));

	const results: (RunResult & { time: number })[] = [];
	for (const one of cases) {
		const start = performance.now();
		results.push({ ...(await run(one)), time: (performance.now() - start) / 1000 });
	}

	const tests = regoTests(folder);
	const left_out: { what: string; why: string }[] = [];
	let rego: RegoRun = { results: [], coverage: [] };
	if (tests.length > 0 && opa === undefined) {
		const what = `the Rego tests in ${tests.map(({ path }) => path).join(", ")}`;
		left_out.push({ what, why: `no OPA was found; ${GET_OPA}` });
	} else if (tests.length > 0 && opa !== undefined) {
		const { results: found, ...rest } = await runRegoTests(folder, opa, isMeasured);
		rego = { ...rest, results: found.filter(({ name }) => name.includes(filter)) };
	}
	if (cases.length + rego.results.length === 0) {
		throw new ResumeGuardError("table_invalid", `no case has "${filter}" in its name`);
	}

	const ok = [...results, ...rego.results].filter((one) => one.ok).length;
	const failed = results.length + rego.results.length - ok + (rego.problem === undefined ? 0 : 1);
	const coverage = isMeasured ? coverageOfCodes(results, { custom: customCodes(folder) }) : undefined;
	const missed =
		(coverage?.missed.length ?? 0) + rego.coverage.filter(({ not_covered }) => not_covered.length > 0).length;
	return {
		ok: failed === 0 && !(requireCoverage === true && missed > 0),
		passed: ok - rego.results.filter(({ skipped }) => skipped).length,
		failed,
		cases: results,
		rego,
		...(coverage !== undefined && { coverage }),
		left_out,
	};
}

/** The codes that the folder's own rules have in them, comments aside. */
function customCodes({ regoFiles }: PolicyFolder): `custom:${string}`[] {
	const rules = regoFiles.filter(({ path }) => !path.endsWith("_test.rego"));
	const codes = rules.flatMap(
		({ text }) => text.replace(/^\s*#.*$/gm, "").match(/"custom:[a-z0-9_]+"/g) ?? [],
	);
	return [...new Set(codes)].map((code) => JSON.parse(code));
}

function suitesOf({ cases, rego }: TestReport) {
	const suites = new Map<string, JunitCase[]>();
	const add = (suite: string, one: JunitCase) => suites.set(suite, [...(suites.get(suite) ?? []), one]);
	for (const one of cases) {
		const { table, title } = split(one.name);
		const { ok, time, code, differs, fault } = one;
		const message = `${differs.join(", ")}: decided by ${code}`;
		const failure = { message, text: `${one.name}\n${compare(one, { fault })}\n` };
		add(`tests/${table}`, { name: title, time, ...(!ok && { failure }) });
	}
	for (const { name, file, ok, skipped, time, message = "failed" } of rego.results) {
		const failure = { message, text: message };
		add(file, { name, time, skipped, ...(!ok && !skipped && { failure }) });
	}
	if (rego.problem !== undefined) {
		const failure = { message: "the Rego tests cannot be run", text: rego.problem };
		add("rego", { name: "opa test", time: 0, failure });
	}
	return [...suites].map(([name, suite]) => ({ name, cases: suite }));
}

function split(name: string): { table: string; title: string } {
	const end = name.indexOf(".json: ") + ".json".length;
	return { table: name.slice(0, end), title: name.slice(end + 2) };
}

function textOf(report: TestReport, style: Style, width: number): string {
	const { cases, rego, coverage, passed, failed, ok } = report;
	const paints = { wrong: "red", beside: "dim", head: "bold" } as const;
	const paint: Paint = (part, text) => style(paints[part], text);
	const lines: string[] = [];
	let group = "";
	const head = (name: string) => {
		if (name !== group) lines.push(style("bold", visible(name)));
		group = name;
	};
	for (const one of cases) {
		const { table, title } = split(one.name);
		head(`tests/${table}`);
		lines.push(resultLine(one.ok, visible(title), style));
		if (!one.ok) lines.push(compare(one, { width, paint, fault: one.fault }), "");
	}
	for (const one of rego.results) {
		head(one.file);
		lines.push(regoLine(one, style));
	}
	if (rego.problem !== undefined) {
		lines.push(resultLine(false, "the Rego tests cannot be run", style), indent(rego.problem));
	}
	if (coverage !== undefined) lines.push(...coverageLines(coverage, rego, style));
	lines.push(style(ok ? "green" : "red", `${passed} passed, ${failed} failed`), "");
	return lines.join("\n");
}

function resultLine(ok: boolean, name: string, style: Style): string {
	return `${ok ? style("green", "pass") : style("red", "FAIL")} ${name}`;
}

function regoLine({ ok, skipped, name, message }: RegoResult, style: Style): string {
	if (skipped) return `${style("yellow", "todo")} ${visible(name)}`;
	const printed = !ok && message !== undefined ? `\n${indent(message)}` : "";
	return resultLine(ok, visible(name), style) + printed;
}

function indent(text: string): string {
	const lines = text.trimEnd().split("\n");
	return lines.map((line) => `  ${visible(line)}`).join("\n");
}

function coverageLines({ reached, missed }: CodeCoverage, rego: RegoRun, style: Style): string[] {
	const lines = [style("bold", "coverage"), `  ${reached.length} codes reached, ${missed.length} never`];
	for (const moment of [...MOMENTS, "custom"]) {
		const codes = missed.flatMap((name) => (name.startsWith(moment) ? [name.slice(moment.length + 1)] : []));
		if (codes.length > 0) lines.push(style("yellow", `  never, ${moment}: ${codes.join(", ")}`));
	}
	for (const { file, coverage, not_covered } of rego.coverage) {
		const rows = not_covered.length === 0 ? "" : `, not lines ${not_covered.join(", ")}`;
		lines.push(`  ${visible(file)}: ${coverage.toFixed(1)} %${rows}`);
	}
	return lines;
}
