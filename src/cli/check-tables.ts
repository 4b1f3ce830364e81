import { type CompletePolicyData, readData } from "../data.ts";
import type { PolicyData, Table } from "../generated/types.ts";
import { MOMENTS } from "../policy.ts";
import { mergePatch } from "../tables.ts";
import { isCode } from "../testing/codes.ts";
import { type Found, pointer } from "./finding.ts";
import { tableSchemaFindings } from "./schema-findings.ts";
import { createUnknownFacts } from "./unknown-facts.ts";

const MEMBERS = [
	"outcome",
	"code",
	"deliver",
	"cursor",
	"held",
	"required",
	"drift",
	"label",
	"session",
	"status",
	"detail",
];

/**
 * All that is wrong with a decision table.
 *
 * @param baseline what its own data is merged over; `undefined` where that is not good itself
 */
export async function checkTable(
	document: unknown,
	baseline: CompletePolicyData | undefined,
): Promise<Found[]> {
	const bySchema = tableSchemaFindings(document);
	if (bySchema.length > 0) return bySchema;
	// It has been held to the schema just now.
	const { cases, facts: shared = {}, data: over = {} } = document as Table;
	const names = new Set<string>();
	const unknownFacts = await createUnknownFacts();
	const claims = baseline && [baseline, over, ...cases.map((one) => one.data)].flatMap(identityClaims);
	const found: Found[] = unknownFacts(shared, claims, ["facts"]);
	for (const [index, { name, facts, data = {}, want }] of cases.entries()) {
		const error = (rule: string, message: string, ...path: string[]) =>
			found.push({ severity: "error", rule, pointer: pointer("cases", index, ...path), message });
		if (names.has(name)) error("case_repeated", "another case of this table has that name", "name");
		names.add(name);
		found.push(...unknownFacts(facts, claims, ["cases", index, "facts"]));
		const { moment, now } = mergePatch(shared, facts);
		if (!MOMENTS.some((one) => one === moment)) {
			error("case_without_moment", `\`moment\` must be one of ${MOMENTS.join(", ")}`, "facts");
		}
		if (now === undefined) {
			const message = "without `now` it is decided at the time of the test, and differently some day";
			found.push({
				severity: "warning",
				rule: "case_without_now",
				pointer: pointer("cases", index, "facts"),
				message,
			});
		}
		for (const member of Object.keys(want)) {
			if (!MEMBERS.includes(member)) error("want_of_nothing", "no decision has this member", "want", member);
		}
		const { code } = want as { code?: unknown };
		if (code !== undefined && !(typeof code === "string" && isCode(code))) {
			error("want_of_nothing", "no decision has this code", "want", "code");
		}
		if (baseline === undefined) continue;
		const problem = await problemOf(mergePatch(mergePatch(baseline, over), data));
		if (problem !== undefined) {
			error("case_data", `with the data of this case, ${problem}`);
		}
	}
	return found;
}

function identityClaims(data: object | undefined): readonly string[] {
	const { identity_claims: claims } = (data ?? {}) as { identity_claims?: unknown };
	return Array.isArray(claims) ? claims.filter((claim) => typeof claim === "string") : [];
}

async function problemOf(data: Record<string, unknown>): Promise<string | undefined> {
	try {
		await readData(data as unknown as PolicyData);
		return undefined;
	} catch (error) {
		return error instanceof Error ? error.message : String(error);
	}
}
