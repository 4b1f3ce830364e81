import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { enumerateDecisions } from "./decisions/enumerate.ts";
import { compareAtRandom } from "./differential.ts";
import { setSubject } from "./guard.ts";
import { universes } from "./universe.ts";

// Says of other guards and policies whether they decide as the model does: a line of JSON with the path of a `policy`
// (Wasm) or of a `guard` (a module like src/index.ts) in, a line with `same` out. The same questions each time.

for await (const line of createInterface({ input: process.stdin })) {
	const { policy, guard } = JSON.parse(line) as { policy?: string; guard?: string };
	let reply: object = { same: true };
	try {
		const module = guard === undefined ? undefined : await import(pathToFileURL(guard).href);
		setSubject({
			...(policy !== undefined && { policy: WebAssembly.compile(readFileSync(policy)) }),
			...(module !== undefined && { create: module.createResumeGuard }),
		});
		await compareAtRandom(120, { seed: 1 });
		for (const universe of universes) await enumerateDecisions(universe, { events: 3, stride: 1_009 });
	} catch (error) {
		reply = { same: false, what: String(error).slice(0, 2_000) };
	}
	console.log(JSON.stringify(reply));
}
