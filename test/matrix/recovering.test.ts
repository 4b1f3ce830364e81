import { describe, test } from "vitest";
import type { Pair, Replay } from "./cell.ts";
import { openRecoveringCell } from "./recovering-cell.ts";
import { type RecoveringScenario, scenarios } from "./recovering-scenarios.ts";

const pairs: readonly Pair[] = [
	{ server: "v1", client: "v1" },
	{ server: "v1", client: "v2" },
	{ server: "v2", client: "v1" },
	{ server: "v2", client: "v2" },
];
const replays: readonly Replay[] = ["atomic", "prefix"];

const cells = replays.flatMap((replay) => pairs.map((pair) => ({ ...pair, replay })));

describe.concurrent.each(cells)("$server server, recovering $client client, $replay", (pair) => {
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
