import { promises as fs } from "node:fs";
import { type Found, pointer } from "./finding.ts";
import { FACTS_SCHEMA } from "./opa.ts";

interface Schema {
	readonly $ref?: string;
	readonly properties?: Readonly<Record<string, Schema>>;
	readonly additionalProperties?: boolean;
	readonly items?: Schema;
}

type Path = readonly (string | number)[];

// Other spellings of the claims, and those of RFC 7519, RFC 7662, RFC 9068 and RFC 8693, which a payload that was
// copied has and no decision looks at.
const CLAIMS =
	`azp scp exp iat nbf jti active username token_type auth_time acr amr act may_act groups roles entitlements
	sid nonce`.split(/\s+/);

/**
 * Finds the members of facts that the guard does not know, which it would pass over or refuse: those that neither
 * `schemas/facts.json` has, nor the form in which a host has claims and events. Where `claims`, which data names, are
 * not known, any claim may be one.
 */
export async function createUnknownFacts(): Promise<
	(facts: unknown, claims: readonly string[] | undefined, at: Path) => Found[]
> {
	const schema = JSON.parse(await fs.readFile(FACTS_SCHEMA, "utf8")) as Schema & {
		readonly $defs: Readonly<Record<string, Schema>>;
	};
	const event: Schema = {
		...schema.$defs.OpenNeed,
		properties: { ...schema.$defs.OpenNeed?.properties, id: {} },
	};

	return (facts, claims, at) => {
		const found: Found[] = [];
		const further = claims && new Set([...claims, ...CLAIMS]);
		walk(facts, schema, at);
		return found;

		function walk(value: unknown, { $ref, ...own }: Schema, path: Path): void {
			const name = $ref?.slice("#/$defs/".length);
			const { properties, items } = name === undefined ? own : (schema.$defs[name] ?? {});
			if (Array.isArray(value)) {
				// Events as they are, and not folded.
				const each = name === "Pending" ? event : items;
				for (const [index, one] of value.entries()) walk(one, each ?? {}, [...path, index]);
				return;
			}
			if (typeof value !== "object" || value === null || properties === undefined) return;
			const isOfToken = name === "Presented" || name === "Binding";
			for (const [member, inner] of Object.entries(value)) {
				// In a patch it takes away.
				if (inner === null) continue;
				const place = [...path, member];
				if (Object.hasOwn(properties, member)) walk(inner, properties[member] ?? {}, place);
				else if (!(isOfToken && (further?.has(member) ?? true))) {
					const message = isOfToken
						? "no decision looks at this claim: it is none of those that are compared, and `identity_claims` in the data does not name it"
						: "facts have no such member";
					found.push({ severity: "warning", rule: "fact_unknown", pointer: pointer(...place), message });
				}
			}
		}
	};
}
