import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const page = readFileSync("docs/hosts.md", "utf8");
/** The code blocks, each with the files that the text before it links to. */
const blocks = page
	.split("```ts\n")
	.slice(1)
	.map((rest, index) => {
		const before = page.split("```ts\n")[index]?.split("```").at(-1) ?? "";
		return {
			code: rest.split("```")[0] ?? "",
			files: [...before.matchAll(/\]\((\.\.\/examples\/[^)]*)\)/g)],
		};
	});

test.each(blocks)("the code of docs/hosts.md is that of the example ($files.0.1)", ({ code, files }) => {
	const sources = files.map(([, path = ""]) => readFileSync(join("docs", path), "utf8"));

	expect(sources.some((source) => source.includes(code))).toBe(true);
});

test("every host has its code", () => {
	expect(blocks.length).toBe(7);
});
