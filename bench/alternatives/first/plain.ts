import { readFile } from "node:fs/promises";
import type { CompletePolicyData } from "../../../src/data.ts";
import { listTools } from "../../questions.ts";
import { createPlain } from "../plain.ts";
import { reportFirst } from "./report.ts";

await reportFirst(async () => {
	const data = JSON.parse(await readFile("policies/mcp/data.json", "utf8")) as CompletePolicyData;
	return createPlain(data).session(listTools("narrow"));
});
