const frozen = new WeakSet<object>();

/** Freezes a JSON value, whole, and remembers that it is. */
export function deepFreeze<T>(value: T): T {
	if (typeof value !== "object" || value === null) return value;
	for (const member of Object.values(value)) deepFreeze(member);
	frozen.add(value);
	return Object.freeze(value);
}

/**
 * What is read from a value that `deepFreeze` has frozen is read once, as long as it is read with the same `by`: nobody can
 * have changed it. Any other value is read each time.
 */
export function readOnce<V extends object, B, R>(read: (value: V, by: B) => R): (value: V, by: B) => R {
	const known = new WeakMap<V, { readonly by: B; readonly result: R }>();
	return (value, by) => {
		if (!frozen.has(value)) return read(value, by);
		const before = known.get(value);
		if (before !== undefined && before.by === by) return before.result;
		const result = deepFreeze(read(value, by));
		known.set(value, { by, result });
		return result;
	};
}
