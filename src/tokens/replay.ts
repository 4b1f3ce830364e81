/** What one machine remembers of the proofs that were used. */
export interface UsedProofs {
	/**
	 * Uses a proof up; `false`: it was used before, or may have been.
	 *
	 * @param iat when it was made, NumericDate
	 * @param horizon proofs from before this time are refused elsewhere, and need not be remembered
	 */
	use(id: string, iat: number, horizon: number): boolean;
}

const CAPACITY = 500_000;

/**
 * Proofs that were used (RFC 9449 section 11.1), in memory. Where one had to be forgotten, by age or for want of room,
 * none that is as old is good any more: under a load that there is no room for, proofs are good for a shorter time,
 * and still none is good twice.
 *
 * @param capacity how many are remembered
 */
export function createUsedProofs(capacity = CAPACITY): UsedProofs {
	const used = new Map<string, number>();
	let forgotten = Number.NEGATIVE_INFINITY;

	function forget(id: string, iat: number): void {
		used.delete(id);
		forgotten = Math.max(forgotten, iat);
	}

	return {
		use(id, iat, horizon) {
			if (iat <= forgotten || used.has(id)) return false;
			used.set(id, iat);
			for (const [oldest, at] of used) {
				if (at >= horizon && used.size <= capacity) break;
				forget(oldest, at);
			}
			return true;
		},
	};
}
