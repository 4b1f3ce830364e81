const SETS = new Set(["aud", "scope", "drift"]);

/**
 * Whether two answers are the same as values: members in any order, sets as sets. What is said for people (`detail`) is
 * left out.
 */
export function isSameAnswer(a: object, b: object): boolean {
	return isSame(a, b, "");
}

function isSame(a: unknown, b: unknown, name: string): boolean {
	if (a === b) return true;
	if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
	if (Array.isArray(a) || Array.isArray(b)) {
		if (!Array.isArray(a) || !Array.isArray(b)) return false;
		if (a.length === b.length && a.every((value, index) => isSame(value, b[index], ""))) return true;
		return SETS.has(name) && isSameSet(a, b);
	}
	const [some, others] = [a as Record<string, unknown>, b as Record<string, unknown>];
	const names = Object.keys(some).filter((member) => member !== "detail");
	if (names.length !== Object.keys(others).filter((member) => member !== "detail").length) return false;
	return names.every(
		(member) => Object.hasOwn(others, member) && isSame(some[member], others[member], member),
	);
}

function isSameSet(a: readonly unknown[], b: readonly unknown[]): boolean {
	const [some, others] = [new Set(a), new Set(b)];
	return some.size === others.size && [...some].every((value) => others.has(value));
}
