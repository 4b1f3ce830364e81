import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createUsedProofs } from "../../src/tokens/replay.ts";

describe("proofs that were used", () => {
	it("are good once", () => {
		const used = createUsedProofs();
		expect(used.use("a", 100, 0)).toBe(true);
		expect(used.use("a", 100, 0)).toBe(false);
		expect(used.use("a", 101, 0)).toBe(false);
		expect(used.use("b", 100, 0)).toBe(true);
	});

	it("are forgotten when they are too old, and stay too old when the clock goes back", () => {
		const used = createUsedProofs(2);
		expect(used.use("a", 100, 50)).toBe(true);
		expect(used.use("b", 160, 101)).toBe(true);
		expect(used.use("c", 160, 101)).toBe(true);
		expect(used.use("a", 100, 50)).toBe(false);
		expect(used.use("d", 100, 50)).toBe(false);
		expect(used.use("b", 160, 50)).toBe(false);
	});

	it("leave others that are as old good, as long as none is forgotten", () => {
		const used = createUsedProofs();
		for (const id of ["a", "b", "c"]) expect(used.use(id, 100, 100)).toBe(true);
	});

	it("make room for others, and nothing that is as old is good any more", () => {
		const used = createUsedProofs(2);
		for (const [id, iat] of [
			["a", 101],
			["b", 100],
			["c", 103],
		] as const)
			expect(used.use(id, iat, 0)).toBe(true);
		expect(used.use("a", 101, 0)).toBe(false);
		expect(used.use("new", 101, 0)).toBe(false);
		expect(used.use("new", 102, 0)).toBe(true);
	});

	it("make room in another order than that of their time", () => {
		const used = createUsedProofs(1);
		for (const [id, iat] of Object.entries({ a: 101, b: 100, c: 102 }))
			expect(used.use(id, iat, 0)).toBe(true);
		expect(used.use("a", 101, 0)).toBe(false);
	});

	it("are not good twice, whatever comes", () => {
		const requests = fc.array(fc.tuple(fc.nat(3), fc.nat(5), fc.nat(5)), { maxLength: 200 });
		fc.assert(
			fc.property(requests, fc.integer({ min: 1, max: 8 }), (all, capacity) => {
				const used = createUsedProofs(capacity);
				// The time of a proof is signed, so it is part of what it is.
				const accepted = all
					.map(([id, iat, horizon]) => ({ id: `${id} ${iat}`, iat, horizon }))
					.filter(({ iat, horizon }) => iat >= horizon)
					.filter(({ id, iat, horizon }) => used.use(id, iat, horizon))
					.map(({ id }) => id);
				expect(new Set(accepted).size).toBe(accepted.length);
			}),
		);
	});
});
