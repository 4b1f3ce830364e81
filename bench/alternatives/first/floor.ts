import { readFile } from "node:fs/promises";
import { loadPolicy } from "@open-policy-agent/opa-wasm";
import { facts } from "./facts.ts";
import { reportFirst } from "./report.ts";

await reportFirst(async () => {
	const floor = await loadPolicy(await readFile("bench/floor.wasm"));
	return floor.evaluate(facts, "floor/session");
});
