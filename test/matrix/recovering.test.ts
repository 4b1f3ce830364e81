import { describe, test } from "vitest";
import type { Pair, Replay } from "./cell.ts";
import { openRecoveringCell } from "./recovering-cell.ts";
import { type RecoveringScenario, scenarios } from "./recovering-scenarios.ts";
import type { TransportKind } from "./servers.ts";

const pairs: readonly Pair[] = [
	{ server: "v1", client: "v1" },
	{ server: "v1", client: "v2" },
	{ server: "v2", client: "v1" },
	{ server: "v2", client: "v2" },
];
const replays: readonly Replay[] = ["atomic", "prefix"];
const transports: readonly TransportKind[] = ["sdk", "own"];

const cells = transports.flatMap((transport) =>
	replays.flatMap((replay) => pairs.map((pair) => ({ ...pair, replay, transport }))),
);

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
