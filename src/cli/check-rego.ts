import { promises as fs } from "node:fs";
import { join } from "node:path";
import type { Finding } from "./finding.ts";
import { CAPABILITIES, FACTS_SCHEMA, type Opa, runOpa } from "./opa.ts";
import { effectiveRules, inStage, type PolicyFolder, RULES, regoTests } from "./policy-folder.ts";

/**
 * The Rego of a policy folder: as `opa fmt` has it, and good for `opa check --strict` by the schema of the facts.
 *
 * @param claims those that data names as identity, and that the facts therefore have beside the usual ones
 */
export async function checkRego(
	folder: PolicyFolder,
	claims: readonly string[],
	opa: Opa,
): Promise<Finding[]> {
	return [...(await checkFormat(folder, opa)), ...(await checkStrictly(folder, claims, opa))];
}

async function checkFormat({ regoFiles }: PolicyFolder, opa: Opa): Promise<Finding[]> {
	return inStage(regoFiles, async (stage) => {
		const { exitCode, stdout } = await runOpa(opa, ["fmt", "--fail", "--list", RULES], stage);
		if (exitCode === 0) return [];
		// Where it cannot be read at all, `opa check` says so and where.
		return stdout.split("\n").flatMap((line): Finding[] => {
			const file = relative(line.trim());
			if (!regoFiles.some(({ path }) => path === file)) return [];
			const message = "is not formatted as `opa fmt` has it: `opa fmt --write` does it";
			return [{ severity: "error", file, rule: "rego_format", message }];
		});
	});
}

/** OPA takes claims that the schema only allows, and does not name, for claims that are not there. */
async function factsSchema(claims: readonly string[]): Promise<object> {
	const schema = JSON.parse(await fs.readFile(FACTS_SCHEMA, "utf8")) as {
		readonly $defs: Readonly<Record<"Presented" | "Binding", { properties: object }>>;
	};
	const any = Object.fromEntries(claims.map((claim) => [claim, {}]));
	for (const def of [schema.$defs.Presented, schema.$defs.Binding]) {
		def.properties = { ...any, ...def.properties };
	}
	return schema;
}

interface Reported {
	readonly message: string;
	readonly code?: string;
	readonly location?: { readonly file?: string; readonly row?: number };
}

async function checkStrictly(folder: PolicyFolder, claims: readonly string[], opa: Opa): Promise<Finding[]> {
	const files = [...(await effectiveRules(folder)), ...regoTests(folder)];
	return inStage(files, async (stage) => {
		const schemas = join(stage, "schemas");
		await fs.mkdir(schemas);
		await fs.writeFile(join(schemas, "facts.json"), JSON.stringify(await factsSchema(claims)));
		const options = ["--strict", "--schema", schemas, "--capabilities", CAPABILITIES, "--max-errors", "0"];
		const args = ["check", ...options, "--format", "json", RULES];
		const { exitCode, stdout, stderr } = await runOpa(opa, args, stage);
		if (exitCode === 0) return [];
		return reportedIn(stderr || stdout).map(({ message, code = "rego_error", location }): Finding => {
			const line = location?.row;
			return {
				severity: "error",
				file: relative(location?.file ?? ""),
				...(line !== undefined && { line }),
				rule: code,
				message,
			};
		});
	});
}

function reportedIn(text: string): readonly Reported[] {
	try {
		const { errors } = JSON.parse(text) as { errors?: Reported | readonly Reported[] };
		if (errors !== undefined) return [errors].flat();
	} catch {
		// Not all that it says is JSON.
	}
	return [{ message: text.trim() || "opa check failed" }];
}

function relative(path: string): string {
	return path.startsWith(`${RULES}/`) ? path.slice(RULES.length + 1) : path || ".";
}
