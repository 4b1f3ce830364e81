import fc from "fast-check";
import { expect, test } from "vitest";
import { createQueue } from "../../src/events/queue.ts";

test("the first item is the one with the lowest number, whatever was added, moved or taken out", () => {
	const steps = fc.array(fc.tuple(fc.nat(20), fc.option(fc.nat(1_000), { nil: undefined })), {
		maxLength: 200,
	});
	fc.assert(
		fc.property(steps, (all) => {
			const queue = createQueue<number>();
			const model = new Map<number, number>();
			for (const [item, order] of all) {
				queue.put(item, order);
				if (order === undefined) model.delete(item);
				else model.set(item, order);
				const first = queue.first();
				const lowest = model.size === 0 ? undefined : Math.min(...model.values());
				expect(first === undefined ? undefined : model.get(first)).toBe(lowest);
				expect(queue.size).toBe(model.size);
			}
		}),
	);
});
