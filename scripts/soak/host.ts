import { createMemoryEventLog } from "mcp-resume-guard";
import { startExample } from "../../examples/fastify/host.ts";

// The host of the soak, in a process of its own: what it holds is what it holds for its clients.

/** What a host holds, after a collection. */
export interface Held {
	readonly heap: number;
	/** How many there are of each kind of handle and timer. */
	readonly resources: Readonly<Record<string, number>>;
	readonly events: number;
	readonly revision: string;
}

const [dataFile = "", transport] = process.argv.slice(2);
// Small, so that they are full long before the end.
const events = createMemoryEventLog({
	events: 5_000,
	eventsPerPrincipal: 2_000,
	streamsPerPrincipal: 500,
	streams: 2_000,
	age: 30,
});
const example = await startExample({ dataFile, guard: { events }, sdkTransport: transport === "sdk" });
const { mcp, origin } = example;
process.send?.({ mcp, origin });

process.once("disconnect", () => process.exit());
process.on("message", (asked) => {
	if (asked === "close") return void example.close().then(() => process.disconnect());
	globalThis.gc?.();
	const resources: Record<string, number> = {};
	for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
	const held: Held = {
		heap: process.memoryUsage().heapUsed,
		resources,
		events: events.stats().events,
		revision: example.app.resumeGuard.guard.revision,
	};
	process.send?.(held);
});
