import fc from "fast-check";

/** Names that mean something to JavaScript, to JSON Pointer, to a terminal or to a contract of this package. */
const names = fc.oneof(
	fc.constantFrom(
		"__proto__",
		"constructor",
		"toString",
		"length",
		"",
		"*",
		"a/b~c",
		"\u001b[2J",
		"\u009b31m",
		"\u2028",
		"\u202e",
		"\0",
		"\ud800",
		"aud",
		"scope",
		"moment",
		"now",
		"pending",
		"tools",
		"x".repeat(5_000),
	),
	fc.string({ unit: "binary", maxLength: 6 }),
);

/** What stands for so many arrays or objects within each other, until it is written. */
const deep = fc
	.tuple(fc.constantFrom(..."[{"), fc.constantFrom(3, 98, 120, 2_000, 30_000))
	.map(([kind, depth]) => `\0deep ${kind} ${depth}`);

const values: fc.Arbitrary<unknown> = fc.oneof(
	fc.constantFrom<unknown>(null, true, false, 0, -0, -1, 1.5, 1e308, 5e-324, 2 ** 53, "", [], {}, [[]]),
	names,
	deep,
	fc.jsonValue({ maxDepth: 2 }),
);

interface Change {
	readonly at: number;
	readonly kind: "replace" | "remove" | "rename" | "add" | "repeat";
	readonly name: string;
	readonly value: unknown;
}

const changes: fc.Arbitrary<Change[]> = fc.array(
	fc.record({
		at: fc.nat(),
		kind: fc.constantFrom("replace", "replace", "remove", "rename", "add", "repeat"),
		name: names,
		value: values,
	}),
	{ minLength: 1, maxLength: 3 },
);

/** JSON text of a value of which some places are others, or nearly JSON text. */
export function mutatedJson(base: unknown): fc.Arbitrary<string> {
	const inPlaces = changes.map((all) => textOf(all.reduce(changed, structuredClone(base))));
	return fc.oneof(
		{ weight: 8, arbitrary: inPlaces },
		{ weight: 1, arbitrary: values.map(textOf) },
		{ weight: 1, arbitrary: mutatedText(JSON.stringify(base)) },
	);
}

/** Text of which a part is cut out, doubled or another. */
export function mutatedText(text: string): fc.Arbitrary<string> {
	const inserted = fc.oneof(
		names,
		fc.constantFrom("1e999", "-", "NaN", "\ufeff", "//", "\\", '"', "{", "]", ",", "00", "\\ud800"),
	);
	return fc.tuple(fc.nat(), fc.nat({ max: 8 }), inserted).map(([at, removed, more]) => {
		const index = at % (text.length + 1);
		return text.slice(0, index) + more + text.slice(index + removed);
	});
}

function textOf(value: unknown): string {
	return (JSON.stringify(value) ?? "null").replace(
		/"\\u0000deep ([[{]) (\d+)"/g,
		(_, kind: string, depth: string) =>
			kind === "["
				? "[".repeat(Number(depth)) + "]".repeat(Number(depth))
				: `${'{"a":'.repeat(Number(depth))}1${"}".repeat(Number(depth))}`,
	);
}

interface Place {
	readonly within: object;
	readonly key: string;
}

function changed(value: unknown, { at, kind, name, value: other }: Change): unknown {
	const places = placesIn(value);
	const place = places[at % places.length];
	if (place === undefined) return other;
	const { within, key } = place;
	const there: unknown = Reflect.get(within, key);
	if (kind === "replace") put(within, key, other);
	else if (kind === "add") put(typeof there === "object" && there !== null ? there : within, name, other);
	else if (Array.isArray(within)) within.splice(Number(key), 1, ...(kind === "repeat" ? [there, there] : []));
	else {
		if (kind !== "repeat") Reflect.deleteProperty(within, key);
		if (kind !== "remove") put(within, name, structuredClone(there));
	}
	return value;
}

/** As a member of its own, whatever its name is. */
function put(on: object, name: string, value: unknown): void {
	if (Array.isArray(on) && !Object.prototype.propertyIsEnumerable.call(on, name)) on.push(value);
	else Object.defineProperty(on, name, { value, enumerable: true, configurable: true, writable: true });
}

function placesIn(value: unknown): Place[] {
	if (typeof value !== "object" || value === null) return [];
	return Object.keys(value).flatMap((key) => [{ within: value, key }, ...placesIn(Reflect.get(value, key))]);
}
