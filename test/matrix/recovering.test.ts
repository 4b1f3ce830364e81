import { describe, test } from "vitest";
import { cells } from "./cells.ts";
import { openRecoveringCell } from "./recovering-cell.ts";
import { type RecoveringScenario, scenarios } from "./recovering-scenarios.ts";

describe.concurrent.each(cells)("$server server, $transport transport, $client recovers, $replay", (pair) => {
	test.each(scenarios)("$name", async (scenario: RecoveringScenario) => {
		const cell = await openRecoveringCell({ ...pair, ...scenario.options });
		try {
			await scenario.run(cell);
			await cell.expectSettled();
		} finally {
			await cell.close();
		}
	});
});
