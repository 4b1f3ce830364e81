import { parseArgs } from "node:util";
import { compareAlternatives } from "./alternatives/main.ts";
import { compare } from "./compare.ts";
import { compareDecide } from "./decide.ts";
import { compareDecisions } from "./decisions.ts";
import { compareHosts } from "./http.ts";
import { compareOptimizations } from "./optimization.ts";

// `npm run bench`: what a decision costs, beside what it costs to ask any policy in Wasm; then what `--http` prints.
// `npm run bench -- --alternatives`: the same decisions by OPA's server, by Cedar and by plain TypeScript; the first
//   decision of a process; memory after a million decisions. Draws docs/cost.svg.
// `npm run bench -- --optimization`: what the levels of `opa build -O` do to it.
// `npm run bench -- --http`: how many requests a guarded host serves, beside the same host without the guard.
// `npm run bench -- --decide [--count N]`: a million lines through the command line, beside the guard in a loop.
// Not a test: what misses its target is printed as such, and that is all. Only memory that grows is an error.

const { values } = parseArgs({
	options: {
		optimization: { type: "boolean" },
		http: { type: "boolean" },
		alternatives: { type: "boolean" },
		decide: { type: "boolean" },
		count: { type: "string" },
		rounds: { type: "string" },
	},
});

if (values.decide) {
	console.log(await compareDecide(Number(values.count ?? 1_000_000)));
} else if (values.alternatives) {
	console.log(await compareAlternatives("docs/cost.svg"));
} else if (values.http) {
	console.log(await compareHosts());
} else {
	const comparisons = values.optimization ? await compareOptimizations() : await compareDecisions();
	if (comparisons.length > 0) console.log(await compare(comparisons, Number(values.rounds ?? 15)));
	if (!values.optimization) console.log(`\n${await compareHosts()}`);
}
