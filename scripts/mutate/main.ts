import { readdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readCases } from "../tables.ts";
import { createAdapterCheck } from "./adapter-check.ts";
import { createTableCheck } from "./check.ts";
import { entryOf, isOf, readEntries, readEquivalents } from "./equivalent.ts";
import { startModel } from "./model.ts";
import { describeMutant, type Mutant } from "./mutant.ts";
import { mutateRego } from "./rego.ts";
import { createRegoCheck, type Finding } from "./rego-check.ts";
import { mutateTypeScript } from "./typescript.ts";

// Do the tests notice? Changes the Rego and the adapter's checks one place at a time. Each change has to be found by the
// tests beside it, the decision tables or the model, or be in equivalent.json with the reason why it changes nothing.
//
//   npm run mutate                  all of them
//   npm run mutate -- --sample 24   so many, always the same
//   npm run mutate -- policies/mcp/call/call.rego   those of some files
//   npm run mutate -- --survivors FILE   writes down those that were not found, for equivalent.json
//   npm run mutate -- --only FILE        those that are written down there, and no others

const ADAPTER = ["src/decision.ts", "src/facts.ts", "src/fold.ts", "src/data.ts"];

const { values, positionals } = parseArgs({
	options: {
		sample: { type: "string" },
		verbose: { type: "boolean" },
		survivors: { type: "string" },
		only: { type: "string" },
	},
	allowPositionals: true,
});

const rego = readdirSync("policies", { recursive: true, encoding: "utf8" })
	.filter((name) => name.endsWith(".rego") && !name.endsWith("_test.rego"))
	.map((name) => `policies/${name}`)
	.sort();
const files = positionals.length > 0 ? positionals : [...rego, ...ADAPTER];
const all: Mutant[] = [];
for (const file of files) {
	all.push(...(file.endsWith(".rego") ? await mutateRego(file) : mutateTypeScript(file)));
}
const only = values.only === undefined ? undefined : readEntries(values.only);
const asked = all.filter((mutant) => only?.some((entry) => isOf(entry, mutant)) ?? true);
const chosen = values.sample === undefined ? asked : sampleOf(asked, Number(values.sample));

const equivalents = readEquivalents().filter(({ file }) => files.includes(file));
const stale = equivalents.filter((entry) => !all.some((mutant) => isOf(entry, mutant)));
for (const { file, within, operator, original } of stale) {
	console.error(`equivalent.json: there is no such mutant: ${file} ${within}: ${operator}: ${original}`);
}

const checkTables = createTableCheck(await readCases());
const model = startModel();
const regoCheck = await createRegoCheck(checkTables, model);
const adapterCheck = createAdapterCheck(model);
const survived: Mutant[] = [];
const killed = { tests: 0, tables: 0, model: 0 };
let equivalent = 0;
let found = 0;
for (const [index, mutant] of chosen.entries()) {
	const isEquivalent = equivalents.some((entry) => isOf(entry, mutant));
	// What is known to change nothing is looked at again only when all are.
	const finding: Finding =
		isEquivalent && values.sample !== undefined
			? undefined
			: mutant.file.endsWith(".rego")
				? await regoCheck.check(mutant)
				: await adapterCheck.check(mutant);
	if (values.verbose) {
		const how = finding === undefined ? (isEquivalent ? "equivalent" : "SURVIVED") : finding.by;
		console.log(`${index + 1}/${chosen.length} ${how} ${finding?.what ?? ""} ${describeMutant(mutant)}`);
	}
	if (finding?.by === "invalid") continue;
	if (finding !== undefined) {
		killed[finding.by] += 1;
		if (isEquivalent) {
			found += 1;
			console.error(`equivalent.json: found by ${finding.by} all the same: ${describeMutant(mutant)}`);
		}
	} else if (isEquivalent) equivalent += 1;
	else {
		survived.push(mutant);
		console.error(`survived: ${describeMutant(mutant)}`);
	}
}
regoCheck.close();
adapterCheck.close();
model.close();

if (values.survivors !== undefined) {
	writeFileSync(values.survivors, `${JSON.stringify(survived.map(entryOf), undefined, "\t")}\n`);
}
const { tests, tables } = killed;
console.log(
	`mutants: ${tests + tables + killed.model} killed, ${equivalent} equivalent, ${survived.length} survived ` +
		`(by tests ${tests}, tables ${tables}, model ${killed.model})`,
);
if (survived.length + stale.length + found > 0) process.exitCode = 1;

/** Always the same, from all of the files. */
function sampleOf(mutants: readonly Mutant[], size: number): Mutant[] {
	// A linear congruential generator (Numerical Recipes): nothing here needs more.
	let state = 1;
	const rest = [...mutants];
	return Array.from({ length: Math.min(size, rest.length) }, () => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return rest.splice(state % rest.length, 1)[0] as Mutant;
	});
}
