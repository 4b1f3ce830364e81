import { spawnSync } from "node:child_process";
import { FULL as DECISIONS } from "./decisions/bounds.ts";
import { enumerateDecisions } from "./decisions/enumerate.ts";
import { universes } from "./universe.ts";
import { FULL as WORLDS } from "./worlds/bounds.ts";
import { enumerateWorlds } from "./worlds/enumerate.ts";

// The model in full, by hand: every decision and every world up to the bounds, then many at random. It takes an hour or
// two; `decisions`, `worlds` or `random` as an argument for a part of it.

const parts = process.argv.slice(2);
const isAsked = (part: string) => parts.length === 0 || parts.includes(part);
const started = performance.now();
const minutes = () => `${((performance.now() - started) / 60_000).toFixed(1)} min`;

if (isAsked("decisions")) {
	for (const universe of universes) {
		const bounds = DECISIONS[universe.name];
		if (bounds === undefined) throw new Error(`no bounds for ${universe.name}`);
		const { situations, decisions, kinds } = await enumerateDecisions(universe, bounds);
		console.log(
			`model: ${universe.name}, up to ${bounds.events} events: ${situations} situations, ` +
				`${decisions} decisions of ${kinds.size} kinds (${minutes()})`,
		);
	}
}
if (isAsked("worlds")) {
	for (const bounds of WORLDS) {
		const count = await enumerateWorlds(bounds, ({ explored, steps }) => {
			if (explored % 50 === 0) console.log(`… ${explored} explored, ${steps} steps (${minutes()})`);
		});
		const { situations, explored, worlds, states, steps, decisions } = count;
		console.log(
			`model: ${bounds.events} events, room for ${bounds.capacity}: ${worlds} worlds of ${situations} situations ` +
				`(${explored} of them different): ${states} states, ${steps} steps, ${decisions} decisions (${minutes()})`,
		);
	}
}
if (isAsked("random")) {
	const tests = ["test/model/differential.test.ts", "test/model/worlds/random.test.ts"];
	const { status } = spawnSync("npx", ["vitest", "run", ...tests], {
		stdio: "inherit",
		env: { ...process.env, MODEL: "full" },
	});
	process.exitCode = status ?? 1;
}
