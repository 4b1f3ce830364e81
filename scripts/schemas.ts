import { readdirSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

/** A JSON Schema 2020-12 object, as far as the generators look into it. */
export type Schema = { readonly [keyword: string]: unknown };

export interface SchemaFile {
	/** File name without `.json`. */
	readonly name: string;
	/** The root's `title`, which is the name of its type. */
	readonly title: string;
	readonly schema: Schema;
	readonly defs: ReadonlyMap<string, Schema>;
}

const typeName = /^[A-Z][A-Za-z0-9]*$/;

/** The schemas in `schemas/`, by file name. Run from the repository root, like every script. */
export function readSchemas(folder = "schemas"): SchemaFile[] {
	const files = readdirSync(folder)
		.filter((file) => file.endsWith(".json"))
		.sort();
	if (files.length === 0) throw new Error(`${folder}: no schema found`);
	return files.map((file) => {
		const schema = JSON.parse(readFileSync(`${folder}/${file}`, "utf8")) as Schema;
		const { title } = schema;
		if (typeof title !== "string" || !typeName.test(title)) {
			throw new Error(`${folder}/${file}: the root needs a title that can name its type`);
		}
		const defs = new Map(Object.entries((schema.$defs ?? {}) as Record<string, Schema>));
		for (const name of defs.keys()) {
			if (!typeName.test(name)) throw new Error(`${folder}/${file}: $defs/${name} cannot name a type`);
		}
		return { name: file.slice(0, -".json".length), title, schema, defs };
	});
}

/** All named schemas of all files: roots by `title`, `$defs` by name. One name means one thing everywhere. */
export function namedSchemas(files: readonly SchemaFile[]): Map<string, Schema> {
	const named = new Map<string, { schema: Schema; from: string }>();
	for (const file of files) {
		const { $schema: _, $id: __, $defs: ___, ...root } = file.schema;
		for (const [name, schema] of [[file.title, root] as const, ...file.defs]) {
			const known = named.get(name);
			if (known !== undefined && !isDeepStrictEqual(known.schema, schema)) {
				throw new Error(
					`${name} is not the same in schemas/${known.from}.json and schemas/${file.name}.json`,
				);
			}
			if (known === undefined) named.set(name, { schema, from: file.name });
		}
	}
	return new Map([...named].map(([name, { schema }]) => [name, schema]));
}
