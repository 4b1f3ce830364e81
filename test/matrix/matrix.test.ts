import { describe, expect, test } from "vitest";
import { openCell } from "./cell.ts";
import { cells } from "./cells.ts";
import { hangs } from "./hangs.ts";
import { type Scenario, scenarios } from "./scenarios.ts";

describe.concurrent.each(cells)("$server server, $transport transport, $client client, $replay", (pair) => {
	const played = scenarios.filter(({ clients = ["v1", "v2"] }) => clients.includes(pair.client));

	test.each(played)("$name", async (scenario: Scenario) => {
		const cell = await openCell({ ...pair, ...scenario.options });
		try {
			const hung = await scenario.run(cell);
			expect(hung === "hung").toBe(
				hangs.some((one) => one.scenario === scenario.name && one.client === pair.client),
			);
		} finally {
			await cell.close();
		}
	});
});

test.each(hangs)("a cell that hangs is played: $scenario, $client client", ({ scenario }) => {
	expect(scenarios.map(({ name }) => name)).toContain(scenario);
});
