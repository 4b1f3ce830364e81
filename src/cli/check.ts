import type { Command } from "commander";
import { type CompletePolicyData, readData } from "../data.ts";
import { jsonLine } from "../explain/index.ts";
import type { PolicyData } from "../generated/types.ts";
import { visible } from "../testing/text.ts";
import { checkRego } from "./check-rego.ts";
import { checkTable } from "./check-tables.ts";
import type { Shell } from "./command.ts";
import type { Finding, Found } from "./finding.ts";
import { lintData, overlappingAliases } from "./lint.ts";
import { findOpa, GET_OPA } from "./opa.ts";
import { type FolderFile, ownRules, type PolicyFolder, parse, readPolicyFolder } from "./policy-folder.ts";
import { repeatedKeys } from "./repeated-keys.ts";
import { dataSchemaFindings } from "./schema-findings.ts";
import { write } from "./stdio.ts";
import { type Style, styleOf } from "./style.ts";

const help = `
Looks at the policy data and the decision tables by their schemas, at resource
indicators that are probably not meant so, and at Rego by \`opa fmt\` and
\`opa check --strict --schema\`. Without OPA it says on standard error what it
left out.

Exit code: 0 if there is no error (and, with --strict, no warning); 1 if there
is one; 2 if DIR is no policy folder, or cannot be read, or if it has Rego rules
of its own and there is no OPA.
`;

export function registerCheck(program: Command, { stdio, exit }: Shell): void {
	program
		.command("check")
		.description("check a policy folder: its data, its tables, its Rego")
		.argument("<dir>", "the policy folder")
		.option("--strict", "a warning counts as an error")
		.option("--json", "write what was found as one JSON object")
		.addHelpText("after", help)
		.action(async (dir: string, { strict, json }: { strict?: true; json?: true }) => {
			const { unknown, ...report } = await check(dir);
			const isGood = report.errors === 0 && (strict !== true || report.warnings === 0);
			const ok = isGood && !unknown;
			for (const { what, why } of report.left_out) {
				stdio.stderr.write(`mcp-resume-guard: left out: ${what}: ${visible(why)}\n`);
			}
			const text = json ? `${jsonLine({ ok, ...report })}\n` : textOf(report, ok, styleOf(stdio.stdout));
			await write(stdio.stdout, text);
			exit(ok ? 0 : isGood ? 2 : 1);
		});
}

export interface CheckReport {
	readonly errors: number;
	readonly warnings: number;
	readonly findings: readonly Finding[];
	/** What could not be looked at. */
	readonly left_out: readonly { readonly what: string; readonly why: string }[];
	/** Whether rules of the folder's own are among that. */
	readonly unknown: boolean;
}

/** @throws {ResumeGuardError} `file_unreadable`: there is no such folder; `opa_missing`: `$OPA` is no OPA */
export async function check(dir: string): Promise<CheckReport> {
	const folder = await readPolicyFolder(dir);
	const { findings: ofData, data } = await checkData(folder.data);
	const ofTables = await checkTables(folder, data);

	const opa = await findOpa();
	const hasRego = folder.regoFiles.length > 0;
	const ofRego =
		opa !== undefined && hasRego ? await checkRego(folder, data?.identity_claims ?? [], opa) : [];
	const what = "opa fmt, opa check";
	const left_out = opa === undefined && hasRego ? [{ what, why: `no OPA was found; ${GET_OPA}` }] : [];
	// The rules of this package are good; of others nobody knows.
	const unknown = left_out.length > 0 && (await ownRules(folder)).length > 0;

	const findings = [...ofData, ...ofTables, ...ofRego];
	const count = (severity: Finding["severity"]) => findings.filter((one) => one.severity === severity).length;
	return { errors: count("error"), warnings: count("warning"), findings, left_out, unknown };
}

async function checkData(
	file: FolderFile,
): Promise<{ findings: Finding[]; data: CompletePolicyData | undefined }> {
	const parsed = parse(file);
	const repeated = "problem" in parsed ? [] : repeatedKeys(file.text);
	const inFile = (found: readonly Found[]) =>
		[...repeated, ...found].map((one) => ({ file: file.path, ...one }));
	if ("problem" in parsed) return { findings: inFile([notJson(parsed.problem)]), data: undefined };
	const bySchema = dataSchemaFindings(parsed.value);
	if (bySchema.length > 0) return { findings: inFile(bySchema), data: undefined };
	const overlaps = overlappingAliases((parsed.value as PolicyData).aliases ?? []);
	if (overlaps.length > 0) return { findings: inFile(overlaps), data: undefined };
	try {
		const data = await readData(parsed.value as PolicyData);
		return { findings: inFile(lintData(data)), data };
	} catch (error) {
		// What neither the schema nor a rule of ours has found.
		const message = error instanceof Error ? error.message : String(error);
		return { findings: inFile([{ severity: "error", rule: "data_invalid", message }]), data: undefined };
	}
}

async function checkTables(
	{ tables }: PolicyFolder,
	baseline: CompletePolicyData | undefined,
): Promise<Finding[]> {
	if (tables.length === 0) {
		const message = "there is no decision table in it: nothing is tested";
		return [{ severity: "warning", file: "tests", rule: "no_table", message }];
	}
	const found: Finding[] = [];
	for (const file of tables) {
		const parsed = parse(file);
		const ofFile =
			"problem" in parsed
				? [notJson(parsed.problem)]
				: [...repeatedKeys(file.text), ...(await checkTable(parsed.value, baseline))];
		found.push(...ofFile.map((one) => ({ file: file.path, ...one })));
	}
	return found;
}

function notJson(problem: string): Found {
	return { severity: "error", rule: "not_json", message: `is not JSON: ${problem}` };
}

function textOf(
	{ findings, errors, warnings }: Omit<CheckReport, "unknown">,
	ok: boolean,
	style: Style,
): string {
	const lines = findings.map(({ severity, file, pointer, line, rule, message }) => {
		const place = pointer !== undefined ? ` ${pointer || "/"}` : line !== undefined ? `:${line}` : "";
		const label = style(severity === "error" ? "red" : "yellow", severity);
		return `${label} ${visible(`${file}${place}`)} ${style("dim", rule)}\n  ${visible(message)}\n`;
	});
	const count = (many: number, what: string) => `${many} ${what}${many === 1 ? "" : "s"}`;
	const summary = `${count(errors, "error")}, ${count(warnings, "warning")}`;
	return `${lines.join("")}${style(ok ? "green" : "red", summary)}\n`;
}
