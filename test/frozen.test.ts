import fc from "fast-check";
import { expect, test } from "vitest";
import { readBinding, readPresented } from "../src/claims.ts";
import { deepFreeze, readOnce } from "../src/frozen.ts";

const claim = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.array(fc.string()), fc.jsonValue());
const claims = fc
	.tuple(
		fc.record({ iss: fc.string(), sub: fc.string(), aud: fc.string(), exp: fc.integer() }),
		fc.dictionary(
			fc.constantFrom("aud", "scope", "scp", "azp", "cnf", "org_id", "act", "exp", "anonymous"),
			claim,
		),
	)
	.map(([usual, others]) => ({ ...usual, ...others }));

test("what is frozen is read once, and again by something else", () => {
	let reads = 0;
	const read = readOnce((value: { readonly n: number }, by: string) => ({
		sum: `${by}${value.n}`,
		reads: ++reads,
	}));
	const value = deepFreeze({ n: 1 });

	expect([read(value, "a"), read(value, "a"), read(value, "b"), read(value, "b")]).toEqual([
		{ sum: "a1", reads: 1 },
		{ sum: "a1", reads: 1 },
		{ sum: "b1", reads: 2 },
		{ sum: "b1", reads: 2 },
	]);
	expect(() => Object.assign(read(value, "b"), { sum: "" })).toThrow(TypeError);
});

test.each([
	["not frozen", { inner: { n: 1 } }],
	["frozen by somebody who may have left a part out", Object.freeze({ inner: { n: 1 } })],
])("what is %s is read each time", (_, value) => {
	const read = readOnce(({ inner }: typeof value, _by: string) => inner.n);
	expect(read(value, "")).toBe(1);
	value.inner.n = 2;
	expect(read(value, "")).toBe(2);
});

test("frozen claims are read as claims are", () => {
	const names = fc.constantFrom(["org_id"], [], ["act", "org_id"]);
	fc.assert(
		fc.property(claims, names, names, (given, first, second) => {
			const copy = structuredClone(given);
			const frozen = deepFreeze(structuredClone(given));
			for (const by of [first, first, second, first]) {
				expect(readPresented(frozen, by)).toEqual(readPresented(copy, by));
				expect(readBinding(frozen, by)).toEqual(readBinding(copy, by));
			}
		}),
	);
});
