/** Those who want to hear of something. */
export interface Listeners<A extends readonly unknown[]> {
	readonly size: number;
	/** Returns how to stop listening. */
	add(listener: (...args: A) => void): () => void;
	/**
	 * Tells everyone who listens now. Listeners may come and go meanwhile; one that throws keeps nobody else
	 * from hearing, its error becomes a warning of the process.
	 */
	tell(...args: A): void;
}

export function createListeners<A extends readonly unknown[]>(): Listeners<A> {
	const entries = new Set<{ readonly call: (...args: A) => void }>();
	return {
		get size() {
			return entries.size;
		},
		add(listener) {
			// An entry of its own: the same function may listen twice.
			const entry = { call: listener };
			entries.add(entry);
			return () => {
				entries.delete(entry);
			};
		},
		tell(...args) {
			for (const entry of [...entries]) {
				if (!entries.has(entry)) continue;
				try {
					entry.call(...args);
				} catch (error) {
					process.emitWarning(error instanceof Error ? error : String(error));
				}
			}
		},
	};
}
