import type { Pair, Replay } from "./cell.ts";
import type { TransportKind } from "./servers.ts";

const pairs: readonly Pair[] = [
	{ server: "v1", client: "v1" },
	{ server: "v1", client: "v2" },
	{ server: "v2", client: "v1" },
	{ server: "v2", client: "v2" },
];
const replays: readonly Replay[] = ["atomic", "prefix"];
const transports: readonly TransportKind[] = ["sdk", "own"];

/** What each scenario is played on. */
export const cells = transports.flatMap((transport) =>
	replays.flatMap((replay) => pairs.map((pair) => ({ ...pair, replay, transport }))),
);
