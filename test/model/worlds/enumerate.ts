import { audiences, PROFILES, REPLAYS, sequencesOf } from "../universe.ts";
import { withClock } from "./clock.ts";
import { classesOf, exploreWorlds, type WorldBounds, type WorldCount } from "./explore.ts";
import { createStage } from "./world.ts";

export interface Enumeration extends WorldBounds {
	/** Events on the stream. */
	readonly events: number;
	/** How many events of a principal the log holds: with fewer than there are, some are evicted. */
	readonly capacity: number;
	/** Every so many-th binding and stream is looked at. 1: nothing is left out. */
	readonly stride: number;
}

export interface Enumerated extends WorldCount {
	/** Bindings and streams, in each profile and mode, and those of them that differ in what is decided. */
	situations: number;
	explored: number;
	/** Questions that the policy was put, each a different one. */
	decisions: number;
}

/**
 * All worlds up to the bounds, for each profile and mode, each binding and each stream. Two bindings have the same worlds
 * if the same is decided about the same tokens in them (which tokens those are does not matter): one is explored.
 */
export function enumerateWorlds(
	{ events, capacity, stride, ...bounds }: Enumeration,
	tell: (count: Enumerated) => void = () => {},
): Promise<Enumerated> {
	return withClock(async (setEra) => {
		const count: Enumerated = { situations: 0, explored: 0, worlds: 0, states: 0, steps: 0, decisions: 0 };
		const known = new Map<string, number>();
		let turn = 0;
		for (const profile of PROFILES) {
			for (const replay of REPLAYS) {
				const data = { ...audiences.data, profile, replay };
				const stage = await createStage(audiences, data, capacity, setEra);
				for (const layout of sequencesOf(audiences.tools, events, audiences.isSymmetric)) {
					for (const binding of audiences.tokens) {
						turn += 1;
						if (turn % stride !== 0) continue;
						count.situations += 1;
						const classes = classesOf(stage, layout, binding);
						const kinds = classes.map(({ vector, size }) => `${size}: ${vector}`).sort();
						const key = JSON.stringify([layout, ...kinds]);
						const worlds = known.get(key);
						if (worlds !== undefined) {
							count.worlds += worlds;
							continue;
						}
						const before = count.worlds;
						await exploreWorlds(stage, layout, binding, classes, bounds, count);
						known.set(key, count.worlds - before);
						count.explored += 1;
						tell(count);
					}
				}
				count.decisions += stage.memo.counts.decided;
			}
		}
		return count;
	});
}
