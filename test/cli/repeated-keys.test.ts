import fc from "fast-check";
import { expect, test } from "vitest";
import { repeatedKeys } from "../../src/cli/repeated-keys.ts";

const places = (text: string) => repeatedKeys(text).map(({ pointer }) => pointer);

test("no value that JSON.stringify writes has a key twice", () => {
	fc.assert(
		fc.property(fc.jsonValue(), fc.constantFrom("", "\t"), (value, indent) => {
			expect(places(JSON.stringify(value, undefined, indent))).toEqual([]);
		}),
	);
});

test("a key that is put into an object once more is found, however it is spelt and wherever it is", () => {
	const members = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue(), { minKeys: 1 });
	fc.assert(
		fc.property(members, fc.jsonValue(), fc.nat(), fc.boolean(), (object, beside, index, isEscaped) => {
			const keys = Object.keys(object);
			const key = keys[index % keys.length] ?? "";
			const units = Array.from({ length: key.length }, (_, at) =>
				key.charCodeAt(at).toString(16).padStart(4, "0"),
			);
			const spelt = isEscaped ? `"${units.map((unit) => `\\u${unit}`).join("")}"` : JSON.stringify(key);
			const again = `{${spelt}: ${JSON.stringify(beside)}, ${JSON.stringify(object).slice(1)}`;
			const text = `[${JSON.stringify(beside)}, {"a": ${again}}]`;
			// The later one counts.
			expect(JSON.parse(text)[1].a[key]).toEqual(JSON.parse(JSON.stringify(object))[key]);
			const escaped = key.replaceAll("~", "~0").replaceAll("/", "~1");
			expect(places(text)).toEqual([`/1/a/${escaped}`]);
		}),
	);
});

test("keys of different objects are different, and strings are no keys", () => {
	expect(
		places('[{"a": "a"}, {"a": ["a", "a"]}, "a", {"b": {"a": "{\\"a\\":1,\\"a\\":2}"}, "a": 1}]'),
	).toEqual([]);
});
