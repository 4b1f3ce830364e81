/** Work that waits for its turn: after what is going on now, and never for long at once. */
export interface Turns<T> {
	/** `false`: too much waits already. */
	add(item: T): boolean;
	/** Does all that waits, now. */
	drain(): void;
	readonly size: number;
}

export interface TurnsOptions<T> {
	/** Must not throw. */
	readonly work: (item: T) => void;
	/** How many may wait. */
	readonly limit: number;
	/** How long a turn may take, in milliseconds; one item may take longer. */
	readonly budget: number;
	/** After a turn that took all of its budget, so many times as long is left to others. */
	readonly rest: number;
	/** Whether the process waits for it. */
	readonly keepsAlive: boolean;
}

export function createTurns<T>({ work, limit, budget, rest, keepsAlive }: TurnsOptions<T>): Turns<T> {
	let items: T[] = [];
	let next = 0;
	let isScheduled = false;

	const size = () => items.length - next;

	function schedule(delay: number): void {
		isScheduled = true;
		const turn = delay < 1 ? setImmediate(takeTurn) : setTimeout(takeTurn, delay);
		if (!keepsAlive) turn.unref();
	}

	function takeTurn(): void {
		isScheduled = false;
		const start = performance.now();
		let spent = 0;
		while (size() > 0 && spent < budget) {
			takeOne();
			spent = performance.now() - start;
		}
		if (size() > 0 && !isScheduled) schedule(spent * rest);
	}

	function takeOne(): void {
		const item = items[next] as T;
		next += 1;
		if (next === items.length) {
			items = [];
			next = 0;
		}
		work(item);
	}

	return {
		add(item) {
			if (size() >= limit) return false;
			items.push(item);
			if (!isScheduled) schedule(0);
			return true;
		},
		drain() {
			while (size() > 0) takeOne();
		},
		get size() {
			return size();
		},
	};
}
