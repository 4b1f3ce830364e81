import fc from "fast-check";
import { expect, test } from "vitest";
import { checkStreamName, formatEventId, parseEventId } from "../../src/events/id.ts";

const name = fc.string({ minLength: 1, maxLength: 512 }).filter((text) => /^[\x21-\x7e]+$/.test(text));
const epoch = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);

test("an id is read as it was written", () => {
	fc.assert(
		fc.property(name, epoch, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (stream, of, n) => {
			checkStreamName(stream);
			expect(parseEventId(formatEventId(stream, of, n))).toEqual({ stream, epoch: of, n });
		}),
	);
});

test("what is read is written the same", () => {
	fc.assert(
		fc.property(
			fc.oneof(
				fc.string(),
				fc.tuple(name, epoch, fc.string()).map((parts) => parts.join(".")),
			),
			(text) => {
				const id = parseEventId(text);
				if (id) expect(formatEventId(id.stream, id.epoch, id.n)).toBe(text);
			},
		),
	);
});
