import { describe, expect, test } from "vitest";
import { openCell, type Pair, type Replay } from "./cell.ts";
import { hangs } from "./hangs.ts";
import { type Scenario, scenarios } from "./scenarios.ts";
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
