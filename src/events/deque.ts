/** A list that grows at its end and shrinks at its front, each in constant time. */
export interface Deque<T> {
	readonly length: number;
	/** Counted from the front. */
	at(index: number): T | undefined;
	push(item: T): void;
	shift(): T | undefined;
}

export function createDeque<T>(): Deque<T> {
	let items: (T | undefined)[] = [];
	let head = 0;
	return {
		get length() {
			return items.length - head;
		},
		at: (index) => items[head + index],
		push(item) {
			items.push(item);
		},
		shift() {
			const item = items[head];
			if (item === undefined) return undefined;
			// What has been shifted must not be held until the list is next cut.
			items[head] = undefined;
			head += 1;
			if (head * 2 >= items.length) {
				items = items.slice(head);
				head = 0;
			}
			return item;
		},
	};
}
