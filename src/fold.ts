import { type Reading, sortedSet } from "./claims.ts";
import type { Label, OpenNeed, Pending, PendingNeed, RequestId } from "./generated/types.ts";

/** An event as a host has it: its id, its label, and the call that it belongs to. Payloads stay with the host. */
export interface EventInput extends Label {
	readonly id: string;
	readonly request_id?: RequestId;
}

/** A need as a host has it: a label, and the call that it belongs to. */
export interface NeedInput extends Label {
	readonly request_id?: RequestId;
}

/** More distinct labels than this are an error of the host: labels come from policy data, which has far fewer. */
export const MAX_LABELS = 16_384;

/**
 * Folds the events after a cursor into their distinct labels, each where it first appears. A decision then costs as
 * much as there are labels, however long or interleaved the buffer. Nothing that a decision needs is lost: the
 * first event that is not covered is the first of its label.
 */
export function foldEvents(events: readonly unknown[], cursor: string): Reading<Pending> {
	const add = distinctLabels();
	const needs: PendingNeed[] = [];
	let before = cursor;
	for (let index = 0; index < events.length; index++) {
		const event = events[index] as Partial<EventInput> | null | undefined;
		if (event == null || typeof event.id !== "string") return { problem: `/${index}/id: must be string` };
		const label = add(event);
		if (typeof label === "string") return { problem: `/${index}${label}` };
		if (label !== undefined) {
			const need = label as PendingNeed;
			need.index = index;
			need.event_id = event.id;
			need.before = before;
			if (event.request_id !== undefined) need.request_id = event.request_id;
			needs.push(need);
		}
		before = event.id;
	}
	const pending: Pending = { count: events.length, needs };
	if (events.length > 0) pending.last = before;
	return { value: pending };
}

/** Folds the calls that are still running into their distinct labels. */
export function foldNeeds(calls: readonly unknown[]): Reading<OpenNeed[]> {
	const add = distinctLabels();
	const needs: OpenNeed[] = [];
	for (const [index, given] of calls.entries()) {
		const call = given as Partial<NeedInput> | null | undefined;
		if (call == null) return { problem: `/${index}: must be object` };
		const label = add(call);
		if (typeof label === "string") return { problem: `/${index}${label}` };
		if (label === undefined) continue;
		const need: OpenNeed = label;
		if (call.request_id !== undefined) need.request_id = call.request_id;
		needs.push(need);
	}
	return { value: needs };
}

/** What a fold could not have given, in pending events that a host has folded itself. */
export function whyNotFoldedWell(
	{ count, last, needs }: Pending,
	cursor: string | undefined,
): string | undefined {
	if (needs.length > MAX_LABELS) return `/needs: more than ${MAX_LABELS} distinct labels`;
	if ((count === 0) !== (last === undefined)) return "/last: there if and only if something is pending";
	const [first] = needs;
	if ((count === 0) !== (first === undefined)) return "/needs: there if and only if something is pending";
	if (first !== undefined && (first.index !== 0 || first.before !== cursor)) {
		return "/needs/0: not the first event after the cursor";
	}
	let previous: PendingNeed | undefined;
	for (const need of needs) {
		const { index, before, event_id } = need;
		if (index >= count || index <= (previous?.index ?? -1)) return "/needs: not in the order of the events";
		const isNext = previous !== undefined && index === previous.index + 1;
		if (isNext && before !== previous?.event_id) return "/needs: a `before` that is not the event before";
		if (index === count - 1 && event_id !== last) return "/last: not the last event";
		previous = need;
	}
	return undefined;
}

// Runs are long and labels few: those seen last are looked at before anything is built.
const RECENT = 8;

/**
 * A function that answers with a label in its normal form (sorted sets) when it comes for the first time, with
 * `undefined` when it is known, and with text when there is something wrong with it.
 */
function distinctLabels(): (given: Partial<Label>) => Label | string | undefined {
	const keys = new Set<string>();
	const recent: Partial<Label>[] = [];
	let distinct = 0;

	return (given) => {
		for (const label of recent) if (isSame(given, label)) return undefined;
		const { tool, rpc, aud, scope } = given;
		if (!Array.isArray(aud) || !Array.isArray(scope)) return ": has no label (aud and scope)";
		if (tool !== undefined && rpc !== undefined) return ": a label of both a tool and a method";
		const key = keyOf(tool, rpc, aud, scope);
		if (key === undefined) return ": a label of other things than strings";
		recent.unshift(given);
		if (recent.length > RECENT) recent.pop();
		if (keys.has(key)) return undefined;
		keys.add(key);

		const label: Label = { aud: sortedSet(aud), scope: sortedSet(scope) };
		if (tool !== undefined) label.tool = tool;
		if (rpc !== undefined) label.rpc = rpc;
		if (aud.length > 1 || scope.length > 1) {
			// The same sets in another order, or with repetitions, are the same label.
			const normal = keyOf(tool, rpc, label.aud, label.scope);
			if (normal === undefined || (normal !== key && keys.has(normal))) return undefined;
			keys.add(normal);
		}
		distinct += 1;
		return distinct > MAX_LABELS ? `: more than ${MAX_LABELS} distinct labels` : label;
	};
}

function isSame(a: Partial<Label>, b: Partial<Label>): boolean {
	return a.tool === b.tool && a.rpc === b.rpc && areSame(a.aud, b.aud) && areSame(a.scope, b.scope);
}

function areSame(a: unknown, b: unknown): boolean {
	if (a === b) return true;
	if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
	for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
	return true;
}

// Each part with its length, so that no two labels have one key; `undefined` if a part is no string.
function keyOf(
	tool: unknown,
	rpc: unknown,
	aud: readonly unknown[],
	scope: readonly unknown[],
): string | undefined {
	let key = "";
	if (tool !== undefined) {
		if (typeof tool !== "string") return undefined;
		key = `t${tool.length}:${tool}`;
	}
	if (rpc !== undefined) {
		if (typeof rpc !== "string") return undefined;
		key = `r${rpc.length}:${rpc}`;
	}
	for (const value of aud) {
		if (typeof value !== "string") return undefined;
		key += `a${value.length}:${value}`;
	}
	for (const value of scope) {
		if (typeof value !== "string") return undefined;
		key += `s${value.length}:${value}`;
	}
	return key;
}
