import { Ajv2020, type Options } from "ajv/dist/2020.js";
import standalone from "ajv/dist/standalone/index.js";
import { build } from "esbuild";
import type { Output } from "./generators.ts";
import { readSchemas, type Schema, type SchemaFile } from "./schemas.ts";

/**
 * One validator for each file of `schemas/` (`facts.json`: `validateFacts`) and, where the root is a union, for
 * each member (`validateCallDecision`), as an ES module that imports nothing and makes no code at run time. A
 * validator stops at the first error. Defaults are written into the value that is validated.
 */
export async function generateValidators(): Promise<Output[]> {
	const files = readSchemas();
	const exported = files.flatMap(({ name, title, schema }) => {
		const id = String(schema.$id);
		const root = { validator: `validate${name.charAt(0).toUpperCase()}${name.slice(1)}`, type: title, id };
		return [
			root,
			...members(schema).map((type) => ({ validator: `validate${type}`, type, id: `${id}#/$defs/${type}` })),
		];
	});
	return [
		{ path: "src/generated/validators.js", content: await compile(files, exported, { useDefaults: true }) },
		{ path: "src/generated/validators.d.ts", content: declarations(exported) },
	];
}

/** What people write, for tools that list all that is wrong with it: these go on after an error, and add no defaults. */
export async function generateListings(): Promise<Output[]> {
	const files = readSchemas().filter(({ name }) => name === "data" || name === "table");
	const exported = files.map(({ name, schema }) => ({
		validator: `list${name.charAt(0).toUpperCase()}${name.slice(1)}Errors`,
		id: String(schema.$id),
	}));
	const content = `// Generated from schemas/ by \`npm run generate\`.
import type { ValidationError } from "./validators.js";

/** Leaves all that is wrong with the value in \`errors\`; answers whether nothing is. */
export interface Listing {
	(value: unknown): boolean;
	errors?: ValidationError[] | null;
}

${exported.map(({ validator }) => `export declare const ${validator}: Listing;\n`).join("")}`;
	return [
		{ path: "src/generated/listings.js", content: await compile(files, exported, { allErrors: true }) },
		{ path: "src/generated/listings.d.ts", content },
	];
}

/** An ES module that exports a validator for each of these. */
async function compile(
	files: readonly SchemaFile[],
	exported: readonly { readonly validator: string; readonly id: string }[],
	options: Options,
): Promise<string> {
	const ajv = new Ajv2020({
		strict: true,
		discriminator: true,
		// One function for each definition: a fifth of the size.
		inlineRefs: false,
		code: { source: true, esm: true, lines: true },
		...options,
	});
	for (const { schema } of files) ajv.addSchema(schema);
	const refs = Object.fromEntries(exported.map(({ validator, id }) => [validator, id]));
	const { outputFiles } = await build({
		stdin: {
			contents: standalone.default(ajv, refs),
			resolveDir: process.cwd(),
			sourcefile: "validators.js",
		},
		// Ajv's runtime helpers, which its standalone code requires, come along.
		bundle: true,
		write: false,
		format: "esm",
		platform: "neutral",
		mainFields: ["main"],
		target: "es2022",
		legalComments: "none",
		minifySyntax: true,
		minifyWhitespace: true,
		banner: { js: "// Generated from schemas/ by `npm run generate`." },
	});
	const [bundle] = outputFiles;
	if (bundle === undefined) throw new Error("validators: esbuild made no output");
	return bundle.text;
}

/** The definitions that a union at the root refers to. */
function members({ anyOf = [] }: Schema): string[] {
	return (anyOf as { $ref: string }[]).map(({ $ref }) => $ref.slice("#/$defs/".length));
}

function declarations(exported: readonly { validator: string; type: string }[]): string {
	const types = exported.map(({ type }) => type).sort();
	return `// Generated from schemas/ by \`npm run generate\`.
import type { ${types.join(", ")} } from "./types.js";

export interface ValidationError {
	/** JSON Pointer to the place in the value. */
	readonly instancePath: string;
	readonly keyword: string;
	readonly params: Readonly<Record<string, unknown>>;
	readonly message?: string;
}

export interface Validator<T> {
	/** Whether the value is valid; where the schema has defaults, writes them into it. */
	(value: unknown): value is T;
	/** What was wrong with the last value. */
	errors?: ValidationError[] | null;
}

${exported.map(({ validator, type }) => `export declare const ${validator}: Validator<${type}>;\n`).join("")}`;
}
