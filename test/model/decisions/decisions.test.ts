import { describe, expect, test } from "vitest";
import { TIMEOUT } from "../bounds.ts";
import { universes } from "../universe.ts";
import { SLICE } from "./bounds.ts";
import { enumerateDecisions } from "./enumerate.ts";

describe.each(universes.map((universe) => [universe.name, universe] as const))("%s", (name, universe) => {
	const bounds = SLICE[name] ?? { events: 1, stride: 1 };

	test(`every decision is the reference's and holds to the laws, up to ${bounds.events} events`, {
		timeout: TIMEOUT,
	}, async () => {
		const { situations, decisions, kinds } = await enumerateDecisions(universe, bounds);
		console.log(`model: ${name}: ${situations} situations, ${decisions} decisions of ${kinds.size} kinds`);
		expect(kinds.size).toBeGreaterThanOrEqual(26);
	});
});
