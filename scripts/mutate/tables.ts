import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { readCases } from "../tables.ts";
import { createTableCheck } from "./check.ts";

// Says of other guards what the decision tables find: a line of JSON with the path of a `guard` (a module like
// src/index.ts) in, a line with what has `failed` out, if anything has.

const checkTables = createTableCheck(await readCases());

for await (const line of createInterface({ input: process.stdin })) {
	const { guard } = JSON.parse(line) as { guard: string };
	let failed: string | undefined;
	try {
		const { createResumeGuard } = (await import(
			pathToFileURL(guard).href
		)) as typeof import("../../src/index.ts");
		failed = await checkTables((data) => createResumeGuard({ data, onFault: () => {} }));
	} catch (error) {
		failed = String(error);
	}
	console.log(JSON.stringify({ failed }));
}
