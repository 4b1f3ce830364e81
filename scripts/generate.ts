import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { generators } from "./generators.ts";

// `tsx scripts/generate.ts [name…]`: writes what these generators make, or what all of them do.
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !generators.some((generator) => generator.name === name));
if (unknown.length > 0)
	throw new Error(`no generator ${unknown}; there are ${generators.map(({ name }) => name)}`);

for (const { name, generate } of generators) {
	if (wanted.length > 0 && !wanted.includes(name)) continue;
	for (const { path, content } of await generate()) {
		mkdirSync(dirname(path), { recursive: true });
		writeFileSync(path, content);
		console.log(path);
	}
}
