import { compile } from "json-schema-to-typescript";
import type { Output } from "./generators.ts";
import { namedSchemas, readSchemas, type Schema } from "./schemas.ts";

/** What the compiler says of every definition, as a comment of its own or at the end of one. */
const referencedBy =
	/^\/\*\*\n \* This interface was referenced by .*\n \* via the .*\n \*\/\n| \*\n \* This interface was referenced by .*\n \* via the .*\n/gm;

/** TypeScript types of everything that `schemas/` names, as one module. */
export async function generateTypes(): Promise<Output[]> {
	const named = [...namedSchemas(readSchemas())].map(([name, schema]) => [name, forTypes(schema)] as const);
	// One of them has to be the root; the others come along as its definitions.
	const [[rootName, root], ...others] = named as [[string, Schema], ...[string, Schema][]];
	const definitions = Object.fromEntries(others.map(([name, schema]) => [name, { ...schema, title: name }]));
	const code = await compile({ ...root, title: rootName, $defs: definitions }, rootName, {
		bannerComment: "// Generated from schemas/ by `npm run generate`.",
		cwd: process.cwd(),
		ignoreMinAndMaxItems: true,
		strictIndexSignatures: false,
		unreachableDefinitions: true,
		unknownAny: true,
		style: { printWidth: 110, singleQuote: false, tabWidth: 3, trailingComma: "all", useTabs: true },
	});
	const content = code.replace(referencedBy, "");
	const exported = [...content.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name);
	const strays = exported.filter((name) => !named.some(([known]) => known === name));
	const missing = named.map(([name]) => name).filter((name) => !exported.includes(name));
	if (strays.length > 0 || missing.length > 0) {
		throw new Error(`types: not named in schemas/: [${strays}]; named there and not generated: [${missing}]`);
	}
	return [{ path: "src/generated/types.ts", content }];
}

/**
 * Annotations beside a `$ref` would make a copy of the type under another name: what the property means stays
 * in the schema, the type is the one referred to. A pattern with a fixed prefix is a template literal, so that a
 * union with literals keeps them.
 */
function forTypes(schema: Schema): Schema {
	const visit = (value: unknown): unknown => {
		if (Array.isArray(value)) return value.map(visit);
		if (typeof value !== "object" || value === null) return value;
		if ("$ref" in value) return { $ref: value.$ref };
		if ("pattern" in value && typeof value.pattern === "string") {
			const [, prefix] = /^\^([a-z]+:)/.exec(value.pattern) ?? [];
			if (prefix !== undefined) return { ...value, tsType: `\`${prefix}\${string}\`` };
		}
		return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, visit(inner)]));
	};
	return visit(schema) as Schema;
}
