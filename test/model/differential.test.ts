import { expect, test } from "vitest";
import { isFull, TIMEOUT } from "./bounds.ts";
import { compareAtRandom } from "./differential.ts";

test("the guard's whole decision is the reference's, for random data and questions", {
	timeout: TIMEOUT,
}, async () => {
	const seen = await compareAtRandom(isFull ? 20_000 : 400, {});
	const decisions = [...seen.values()].reduce((sum, count) => sum + count, 0);
	console.log(`model: ${decisions} random decisions of ${seen.size} kinds are the reference's`);
	// It says nothing of what is never asked.
	expect(seen.size).toBeGreaterThan(40);
});
