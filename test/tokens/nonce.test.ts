import { describe, expect, it } from "vitest";
import { createNonces } from "../../src/tokens/nonce.ts";

const SECRET = new Uint8Array(32).fill(7);
const NOW = 1_796_000_000 - (1_796_000_000 % 300);

/** The nonce that is given out at a time. */
async function given(secret: Uint8Array, now: number): Promise<string> {
	return createNonces(secret)
		.check(undefined, now)
		.then(
			() => Promise.reject(new Error("good")),
			(error) => error.dpopNonce,
		);
}

describe("nonces", () => {
	it("are given out with the refusal", async () => {
		await expect(createNonces(SECRET).check(undefined, NOW)).rejects.toMatchObject({
			code: "dpop_nonce_required",
			message: "The DPoP proof needs a nonce of this server",
			dpopNonce: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
		});
	});

	it.each([
		["at once", 0, true],
		["when the next one is given out", 300, true],
		["just before the one after", 599, true],
		["when the one after is given out", 600, false],
		["on a machine whose clock is behind", -1, true],
		["on a machine whose clock is five minutes behind", -300, true],
		["on a machine whose clock is further behind", -301, false],
	])("are good %s: %s seconds, %s", async (_, later, good) => {
		const nonce = await given(SECRET, NOW);
		const check = createNonces(SECRET).check(nonce, NOW + later);
		if (good) await expect(check).resolves.toBeUndefined();
		else await expect(check).rejects.toMatchObject({ code: "dpop_nonce_required" });
	});

	it("change with time, and are those of their secret", async () => {
		const nonce = await given(SECRET, NOW);
		expect(await given(SECRET, NOW + 299)).toBe(nonce);
		expect(await given(SECRET, NOW + 300)).not.toBe(nonce);
		const other = createNonces(new Uint8Array(32).fill(8));
		await expect(other.check(nonce, NOW)).rejects.toMatchObject({ code: "dpop_nonce_required" });
	});

	it.each([
		["undefined", undefined],
		["null", null],
		["a number", 1],
		["empty", ""],
		["a list", ["x"]],
		["made up", "x"],
	])("are not: %s", async (_, nonce) => {
		await expect(createNonces(SECRET).check(nonce, NOW)).rejects.toMatchObject({
			code: "dpop_nonce_required",
		});
	});

	it("stay the same when the caller's bytes change", async () => {
		const secret = new Uint8Array(SECRET);
		const nonces = createNonces(secret);
		secret.fill(0);
		await expect(nonces.check(await given(SECRET, NOW), NOW)).resolves.toBeUndefined();
	});

	it.each([
		["too short", new Uint8Array(31)],
		["empty", new Uint8Array(0)],
		["a string", "x".repeat(32) as unknown as Uint8Array],
	])("need a secret that is not %s", (_, secret) => {
		expect(() => createNonces(secret)).toThrow(TypeError);
	});
});
