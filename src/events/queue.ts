/** Items in the order of a number that may change: a binary heap that knows where each item is. */
export interface Queue<T> {
	readonly size: number;
	/** The item with the lowest number. */
	first(): T | undefined;
	/** Adds the item, or moves it; without a number it is taken out. */
	put(item: T, order: number | undefined): void;
}

interface Entry<T> {
	readonly item: T;
	order: number;
	place: number;
}

export function createQueue<T>(): Queue<T> {
	const heap: Entry<T>[] = [];
	const entries = new Map<T, Entry<T>>();

	function set(entry: Entry<T>, place: number): void {
		heap[place] = entry;
		entry.place = place;
	}

	function swap(a: Entry<T>, b: Entry<T>): void {
		const place = a.place;
		set(a, b.place);
		set(b, place);
	}

	function lowerChild({ place }: Entry<T>): Entry<T> | undefined {
		const left = heap[2 * place + 1];
		const right = heap[2 * place + 2];
		return left && right && right.order < left.order ? right : left;
	}

	function settle(entry: Entry<T>): void {
		for (
			let up = heap[(entry.place - 1) >> 1];
			up && up.order > entry.order;
			up = heap[(entry.place - 1) >> 1]
		) {
			swap(entry, up);
		}
		for (let down = lowerChild(entry); down && down.order < entry.order; down = lowerChild(entry)) {
			swap(entry, down);
		}
	}

	function remove(entry: Entry<T>): void {
		entries.delete(entry.item);
		const last = heap.pop();
		if (!last || last === entry) return;
		set(last, entry.place);
		settle(last);
	}

	return {
		get size() {
			return heap.length;
		},
		first: () => heap[0]?.item,
		put(item, order) {
			const known = entries.get(item);
			if (order === undefined) {
				if (known) remove(known);
			} else if (!known) {
				const entry = { item, order, place: heap.length };
				entries.set(item, entry);
				heap.push(entry);
				settle(entry);
			} else if (known.order !== order) {
				known.order = order;
				settle(known);
			}
		},
	};
}
