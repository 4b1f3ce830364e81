import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const page = readFileSync("docs/hosts.md", "utf8");
/** The code blocks, each with the files that the text before it links to. */
const blocks = page.split("```ts\n").flatMap((part, index, parts) => {
	const before = parts[index - 1]?.split("```").at(-1);
	if (before === undefined) return [];
	const files = [...before.matchAll(/\]\((\.\.\/examples\/[^)]*)\)/g)].map(([, path = ""]) => path);
	return [{ code: part.split("```")[0] ?? "", files }];
});

/** Code without what a formatter decides. */
function bare(code: string): string {
	return code.replace(/\s/g, "").replace(/,(?=[)\]}])/g, "");
}

test.each(blocks)("the code of docs/hosts.md is that of the example ($files.0)", ({ code, files }) => {
	const sources = files.map((path) => bare(readFileSync(join("docs", path), "utf8")));

	expect(sources.some((source) => source.includes(bare(code)))).toBe(true);
});

test("every host has its code", () => {
	expect(blocks.length).toBe(8);
});
