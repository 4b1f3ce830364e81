import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** What this process has on its heap and beside it, in bytes, once everything that is garbage has been collected. */
export async function bytesInUse(): Promise<number> {
	// What one collection frees, the next one may find to have held more: buffers, connections, modules.
	for (let round = 0; round < 5; round++) {
		collect();
		await sleep(50);
	}
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
}
