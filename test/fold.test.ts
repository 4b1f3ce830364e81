import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { foldEvents, foldNeeds, MAX_LABELS, whyNotFoldedWell } from "../src/fold.ts";
import type { Pending } from "../src/generated/types.ts";
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
				expect(foldEvents(all, "c")).toStrictEqual({ value: folded(all, "c") });
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

	// More labels come between than are looked at before anything is built.
	const others = Array.from({ length: 20 }, (_, i) => ({ tool: `other_${i}`, aud: [], scope: [] }));

	it.each([
		[[["a"], ["a"]]],
		[[["a"], ["a", "a"]]],
		[[["a", "a"], ["a"]]],
		[
			[
				["a", "b"],
				["b", "a"],
			],
		],
		[
			[
				["b", "a"],
				["a", "b"],
			],
		],
		[
			[
				["a", "b"],
				["b", "a"],
				["a", "b"],
			],
		],
	])("the same sets are one label, in whatever order they come: %j", (forms) => {
		for (const member of ["aud", "scope"]) {
			const calls = forms.flatMap((form): NeedInput[] => [
				{ tool: "search", aud: [], scope: [], [member]: form },
				...others,
			]);
			const wanted = [{ tool: "search", aud: [], scope: [], [member]: set(forms.flat()) }, ...others];
			expect(foldNeeds(calls)).toEqual({ value: wanted });
			const all = calls.map((call, index) => ({ ...call, id: `${index}` }));
			expect(foldEvents(all, "c")).toEqual({ value: folded(all, "c") });
		}
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
			expect(foldNeeds(calls)).toStrictEqual({ value: needs });
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

	it.each<[string, unknown, string]>([
		["null", null, "/1: must be object"],
		["undefined", undefined, "/1: must be object"],
		["no aud", { ...good, aud: undefined }, "/1: has no label (aud and scope)"],
		["a tool and a method", { ...good, rpc: "x" }, "/1: a label of both a tool and a method"],
	])("a call: %s", (_, call, problem) => {
		expect(foldNeeds([good, call])).toEqual({ problem });
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

describe("pending events that a host has folded itself", () => {
	const need = { tool: "search", aud: ["a"], scope: [] };
	const first = { ...need, index: 0, event_id: "1", before: "0" };
	const second = { ...need, tool: "fetch", index: 1, event_id: "2", before: "1" };
	const two: Pending = { count: 2, last: "2", needs: [first, second] };
	const later = { ...second, index: 2, event_id: "3", before: "2" };

	it("may be as they are folded here", () => {
		fc.assert(
			fc.property(fc.oneof(events, pendingEvents), (all) => {
				expect(whyNotFoldedWell(folded(all, "c"), "c")).toBeUndefined();
			}),
		);
	});

	it("may have as many labels as there may be, and no more", () => {
		const needs = Array.from({ length: MAX_LABELS + 1 }, (_, index) => ({
			...need,
			index,
			event_id: `${index + 1}`,
			before: `${index}`,
		}));
		const of = (count: number): Pending => ({ count, last: `${count}`, needs: needs.slice(0, count) });
		expect(whyNotFoldedWell(of(MAX_LABELS), "0")).toBeUndefined();
		expect(whyNotFoldedWell(of(MAX_LABELS + 1), "0")).toBe("/needs: more than 16384 distinct labels");
	});

	it.each<[string, Pending, string]>([
		["nothing, with a last event", { count: 0, last: "2", needs: [] }, "/last: there if and only if"],
		["something, without one", { count: 2, needs: [first, second] }, "/last: there if and only if"],
		["nothing, with a need", { count: 0, needs: [first] }, "/needs: there if and only if"],
		["something, without a need", { count: 2, last: "2", needs: [] }, "/needs: there if and only if"],
		[
			"a first need that is not of the first event",
			{ count: 3, last: "3", needs: [{ ...second, before: "0" }] },
			"/needs/0: not the first event",
		],
		[
			"a first need after another cursor",
			{ ...two, needs: [{ ...first, before: "9" }, second] },
			"/needs/0: not the first event",
		],
		[
			"a need beyond the last event",
			{ count: 2, last: "2", needs: [first, later] },
			"/needs: not in the order",
		],
		[
			"two needs of one event",
			{ ...two, needs: [first, { ...second, index: 0 }] },
			"/needs: not in the order",
		],
		[
			"needs in another order",
			{ count: 4, last: "4", needs: [first, later, second] },
			"/needs: not in the order",
		],
		[
			"the next need after another event",
			{ ...two, needs: [first, { ...second, before: "0" }] },
			"/needs: a `before` that is not",
		],
		["the last need of another event", { ...two, last: "3" }, "/last: not the last event"],
	])("are not: %s", (_, pending, problem) => {
		expect(whyNotFoldedWell(pending, "0")).toMatch(new RegExp(`^${problem}`));
	});
});
