import { describe, expect, test } from "vitest";
import { TIMEOUT } from "../bounds.ts";
import { SLICE } from "./bounds.ts";
import { enumerateWorlds } from "./enumerate.ts";

describe.each(SLICE)("$events events, room for $capacity, $resumes resumes", (bounds) => {
	test("nothing is lost and no one gets in, whatever happens", { timeout: TIMEOUT }, async () => {
		const { situations, explored, worlds, states, steps, decisions } = await enumerateWorlds(bounds);
		console.log(
			`model: ${worlds} worlds of ${situations} situations (${explored} of them different): ` +
				`${states} states, ${steps} steps, ${decisions} decisions`,
		);
		expect(worlds).toBeGreaterThan(1_000);
	});
});
