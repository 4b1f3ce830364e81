/** The longest that a Node timer can wait, in seconds. */
export const LONGEST_WAIT = 2_147_482;

/** The defaults with what was given over them; a `TypeError` for a name that is none or a value that is no positive integer. */
export function withLimits<T extends Record<keyof T, number>>(defaults: T, given: Partial<T> = {}): T {
	const limits = { ...defaults };
	for (const [name, value] of Object.entries(given)) {
		if (value === undefined) continue;
		if (!Object.hasOwn(defaults, name)) throw new TypeError(`there is no limit ${JSON.stringify(name)}`);
		if (!Number.isSafeInteger(value) || Number(value) < 1) {
			throw new TypeError(`the limit ${name} must be a positive integer`);
		}
		Object.assign(limits, { [name]: value });
	}
	return limits;
}
