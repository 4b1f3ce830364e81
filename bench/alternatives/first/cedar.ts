import { readFile } from "node:fs/promises";
import type { PolicyData } from "mcp-resume-guard";
import { facts } from "./facts.ts";
import { reportFirst } from "./report.ts";

await reportFirst(async () => {
	const data = JSON.parse(await readFile("policies/mcp/data.json", "utf8")) as PolicyData;
	// It compiles its Wasm when it is imported.
	const { createCedar } = await import("../cedar.ts");
	return createCedar(data).session(facts);
});
