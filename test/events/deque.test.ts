import fc from "fast-check";
import { expect, test } from "vitest";
import { createDeque } from "../../src/events/deque.ts";

test("a deque is a list", () => {
	fc.assert(
		fc.property(fc.array(fc.option(fc.nat(), { nil: undefined }), { maxLength: 200 }), (steps) => {
			const deque = createDeque<number>();
			const model: number[] = [];
			for (const step of steps) {
				if (step === undefined) expect(deque.shift()).toBe(model.shift());
				else {
					deque.push(step);
					model.push(step);
				}
				expect(deque.length).toBe(model.length);
				expect([deque.at(0), deque.at(model.length - 1), deque.at(model.length)]).toEqual([
					model[0],
					model.at(-1),
					undefined,
				]);
			}
		}),
	);
});
