import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { foldEvents, foldNeeds, MAX_LABELS } from "../src/fold.ts";
import type { EventInput, Label, NeedInput } from "../src/index.ts";
import { pendingEvents } from "./arbitraries.ts";

const set = (values: readonly string[]) => [...new Set(values)].sort();
const keyOf = ({ tool, rpc, aud, scope }: Label) =>
	JSON.stringify([tool ?? null, rpc ?? null, set(aud), set(scope)]);

function normal({ tool, rpc, aud, scope }: Label): Label {
	return {
		...(tool !== undefined && { tool }),
		...(rpc !== undefined && { rpc }),
		aud: set(aud),
		scope: set(scope),
	};
}

// The obvious fold.
function folded(events: readonly EventInput[], cursor: string) {
	const first = events.filter(
		(event, index) => events.findIndex((other) => keyOf(other) === keyOf(event)) === index,
	);
	const needs = first.map((event) => {
		const index = events.indexOf(event);
		const { request_id, id } = event;
		const before = events[index - 1]?.id ?? cursor;
		return { ...normal(event), index, event_id: id, before, ...(request_id !== undefined && { request_id }) };
	});
	const last = events.at(-1);
	return { count: events.length, needs, ...(last !== undefined && { last: last.id }) };
}

// Labels that differ in little: in parts that run into each other, in order, in repetitions.
const parts = fc.array(fc.constantFrom("a", "b", "ab", "a1:b", "", "1:a"), { maxLength: 3 });
const label = fc.oneof(
	fc.record({ aud: parts, scope: parts }),
	fc.record({ tool: fc.constantFrom("a", "b", ""), aud: parts, scope: parts }),
	fc.record({ rpc: fc.constantFrom("a", "b", ""), aud: parts, scope: parts }),
);
const events = fc
	.array(fc.tuple(label, fc.option(fc.oneof(fc.integer(), fc.string()), { nil: undefined })), {
		maxLength: 40,
	})
	.map((all) =>
		all.map(
			([what, id], index): EventInput => ({
				...what,
				id: `${index}`,
				...(id !== undefined && { request_id: id }),
			}),
		),
	);

describe("events, folded by label", () => {
	it("as the obvious fold has it", () => {
		fc.assert(
			fc.property(fc.oneof(events, pendingEvents), (all) => {
				expect(foldEvents(all, "c")).toEqual({ value: folded(all, "c") });
			}),
		);
	});

	it("as many labels as there are, not more, however many events", () => {
		const all = Array.from({ length: 10_000 }, (_, i) => ({
			id: `${i}`,
			tool: `t${i % 20}`,
			aud: ["a", "b"],
			scope: [],
		}));
		expect(foldEvents(all, "c")).toMatchObject({
			value: { count: 10_000, last: "9999", needs: { length: 20 } },
		});
	});

	it("the first of a label names the call", () => {
		const search = { tool: "search", aud: ["a"], scope: [] };
		const all = [
			{ ...search, id: "1", request_id: "x" },
			{ ...search, id: "2", request_id: 7 },
		];
		expect(foldEvents(all, "0")).toEqual({
			value: {
				count: 2,
				last: "2",
				needs: [{ ...search, index: 0, event_id: "1", before: "0", request_id: "x" }],
			},
		});
	});

	it("the events stay as they were", () => {
		const event = Object.freeze({
			id: "1",
			aud: Object.freeze(["b", "a", "b"]) as string[],
			scope: Object.freeze([]) as unknown as string[],
		});
		expect(foldEvents([event], "0")).toMatchObject({ value: { needs: [{ aud: ["a", "b"] }] } });
		expect(event.aud).toEqual(["b", "a", "b"]);
	});
});

test("open calls are folded alike", () => {
	fc.assert(
		fc.property(events, (all) => {
			const calls = all.map(({ id: _, ...call }): NeedInput => call);
			const needs = folded(all, "c").needs.map(({ index: _, event_id: __, before: ___, ...need }) => need);
			expect(foldNeeds(calls)).toEqual({ value: needs });
		}),
	);
});

describe("what is no event or no label is named by its place", () => {
	const good = { id: "1", tool: "search", aud: ["a"], scope: ["s"] };

	it.each<[string, unknown, string]>([
		["null", null, "/1/id: must be string"],
		["undefined", undefined, "/1/id: must be string"],
		["no id", { ...good, id: undefined }, "/1/id: must be string"],
		["an id that is a number", { ...good, id: 2 }, "/1/id: must be string"],
		["no aud", { ...good, aud: undefined }, "/1: has no label (aud and scope)"],
		["no scope", { ...good, scope: undefined }, "/1: has no label (aud and scope)"],
		["aud that is text", { ...good, aud: "a" }, "/1: has no label (aud and scope)"],
		["aud that is null", { ...good, aud: null }, "/1: has no label (aud and scope)"],
		["a tool and a method", { ...good, rpc: "x" }, "/1: a label of both a tool and a method"],
		["a tool that is a number", { ...good, tool: 1 }, "/1: a label of other things than strings"],
		["a tool that is null", { ...good, tool: null }, "/1: a label of other things than strings"],
		[
			"a method that is an object",
			{ ...good, tool: undefined, rpc: {} },
			"/1: a label of other things than strings",
		],
		["an aud of a number", { ...good, aud: ["a", 1] }, "/1: a label of other things than strings"],
		["a scope of null", { ...good, scope: [null] }, "/1: a label of other things than strings"],
	])("%s", (_, event, problem) => {
		expect(foldEvents([good, event], "0")).toEqual({ problem });
	});

	it("one label more than there may be", () => {
		const all = Array.from({ length: MAX_LABELS + 1 }, (_, i) => ({
			id: `${i}`,
			tool: `t${i}`,
			aud: [],
			scope: [],
		}));
		expect(foldEvents(all.slice(0, -1), "c")).toHaveProperty("value.count", MAX_LABELS);
		expect(foldEvents(all, "c")).toEqual({
			problem: `/${MAX_LABELS}: more than ${MAX_LABELS} distinct labels`,
		});
	});
});
