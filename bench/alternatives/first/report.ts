/** What a process prints of its first decision. */
export interface FirstDecision {
	/** Milliseconds from the call that starts to load until there is a decision. */
	readonly took: number;
	/** When that was, as `Date.now()` says. */
	readonly at: number;
}

/** Loads and decides, once, and prints how long that took. */
export async function reportFirst(decide: () => Promise<unknown>): Promise<void> {
	const start = performance.now();
	const answer = await decide();
	const first: FirstDecision = { took: performance.now() - start, at: Date.now() };
	if (answer === undefined) throw new Error("no decision");
	console.log(JSON.stringify(first));
}
