import { isDeepStrictEqual } from "node:util";
import { escapeSegment, unescapeSegment } from "./pointer.ts";

/** What a mask may change of a record. */
export interface Maskable {
	readonly input?: unknown;
	readonly result?: unknown;
	readonly erased?: readonly string[];
	readonly masked?: readonly string[];
}

interface Rule {
	readonly op: "remove" | "upsert";
	readonly part: string;
	/** Below the part, escaped as OPA has them. */
	readonly segments: readonly string[];
	readonly value: unknown;
}

/**
 * Applies what a rule `system/log/mask` answers, as OPA does it (v1/plugins/logs/mask.go): pointers below `/input` or
 * `/result` to remove, or objects `{op: "remove" | "upsert", path, value}`. A path to nothing changes nothing.
 *
 * Two things that OPA would leave are masked here: a path may name a member by its percent-encoded name
 * (`x5t%23S256`), and an answer whose order matters and cannot be told is no answer.
 *
 * @param answer `undefined`: nothing to mask
 * @throws {Error} for an answer that OPA would not take
 */
export function applyMask<T extends Maskable>(record: T, answer: unknown): T {
	if (answer === undefined) return record;
	const given = readRules(answer);
	// Wasm writes a set in any order, OPA in that of its terms; an array has its own. Where it matters, it is not known.
	const sorted = readRules([...(answer as unknown[])].sort(compareTerms));
	const masked = applyRules(record, sorted);
	const asGiven = applyRules(record, given);
	const isSame =
		isDeepStrictEqual(masked.input, asGiven.input) && isDeepStrictEqual(masked.result, asGiven.result);
	if (!isSame) throw new Error("the order of the mask's rules matters");
	return masked;
}

function readRules(answer: unknown): Rule[] {
	if (!Array.isArray(answer)) throw new Error("the mask is no set");
	return answer.map((rule: unknown) => {
		if (typeof rule === "string") return readRule("remove", rule, undefined);
		if (typeof rule !== "object" || rule === null || Array.isArray(rule))
			throw new Error("a mask of another kind");
		const { op, path, value = null } = rule as Record<string, unknown>;
		return readRule(op, path, value);
	});
}

function readRule(op: unknown, path: unknown, value: unknown): Rule {
	if (op !== "remove" && op !== "upsert") throw new Error("a mask of another op");
	if (typeof path !== "string" || !path.startsWith("/")) throw new Error("a mask of no path");
	const parts = path.slice(1).split("/");
	const [part = "", ...segments] = parts;
	if (!["input", "result", "nd_builtin_cache"].includes(part)) throw new Error("a mask of another part");
	if (parts.some((segment) => unescapeSegment(segment) === undefined))
		throw new Error("a mask of a malformed path");
	return { op, part, segments: segments.map(escapeSegment), value };
}

function applyRules<T extends Maskable>(record: T, rules: readonly Rule[]): T {
	const parts: Fields = {};
	for (const part of ["input", "result"] as const) {
		if (record[part] !== undefined) parts[part] = structuredClone(record[part]);
	}
	const erased = [...(record.erased ?? [])];
	const masked = [...(record.masked ?? [])];
	for (const { op, part, segments, value } of rules) {
		if (!Object.hasOwn(parts, part)) continue;
		const pointer = `/${[part, ...segments].join("/")}`;
		if (op === "remove" && remove(parts, [part, ...segments])) erased.push(pointer);
		if (op === "upsert" && upsert(parts, part, segments, structuredClone(value))) masked.push(pointer);
	}
	const { input: _, result: __, erased: ___, masked: ____, ...rest } = record;
	return {
		...rest,
		...parts,
		...(erased.length > 0 && { erased }),
		...(masked.length > 0 && { masked }),
	} as unknown as T;
}

type Fields = Record<string, unknown>;

function remove(parts: Fields, path: readonly string[]): boolean {
	const target = path.at(-1) ?? "";
	const holder = path.slice(0, -1).reduce<unknown>((node, segment) => {
		const key = keyIn(node, segment);
		return key === undefined ? undefined : (node as Fields)[key];
	}, parts);
	const key = keyIn(holder, target);
	if (key === undefined) return false;
	if (Array.isArray(holder)) holder.splice(Number(key), 1);
	else delete (holder as Fields)[key];
	return true;
}

function upsert(parts: Fields, part: string, segments: readonly string[], value: unknown): boolean {
	if (segments.length > 0 && !isContainer(parts[part])) return false;
	let node: unknown = parts;
	const path = [part, ...segments];
	for (const [index, segment] of path.entries()) {
		if (!isContainer(node)) return false;
		const known = keyIn(node, segment);
		// Only an object gets a member that it does not have.
		if (known === undefined && Array.isArray(node)) return false;
		const key = known ?? segment;
		if (index === path.length - 1) set(node, key, value);
		else if (known === undefined) set(node, key, {});
		node = (node as Fields)[key];
	}
	return true;
}

// An own property whatever its name is.
function set(node: object, key: string, value: unknown): void {
	Object.defineProperty(node, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The member or item that a segment names, if it is there. */
function keyIn(node: unknown, segment: string): string | undefined {
	if (Array.isArray(node)) {
		const index = /^[+-]?\d+$/.test(segment) ? Number(segment) : -1;
		return index >= 0 && index < node.length ? String(Math.abs(index)) : undefined;
	}
	if (!isContainer(node)) return undefined;
	if (Object.hasOwn(node, segment)) return segment;
	// `segment` is escaped once, and OPA looks no further.
	for (let name = unescapeSegment(segment); name !== undefined; ) {
		if (Object.hasOwn(node, name)) return name;
		const once = unescapeSegment(name);
		name = once === name ? undefined : once;
	}
	return undefined;
}

function isContainer(node: unknown): node is object {
	return typeof node === "object" && node !== null;
}

const TYPES = ["null", "boolean", "number", "string", "array", "object"];

/** The order of OPA's terms (v1/ast/compare.go), for JSON. */
function compareTerms(a: unknown, b: unknown): number {
	const byType = TYPES.indexOf(typeOf(a)) - TYPES.indexOf(typeOf(b));
	if (byType !== 0) return byType;
	if (typeof a === "string") return compareText(a, b as string);
	if (typeof a !== "object" || a === null) return Number(a) - Number(b);
	return Array.isArray(a)
		? compareLists(a, b as unknown[], compareTerms)
		: compareLists(membersOf(a), membersOf(b as object), compareMembers);
}

function typeOf(value: unknown): string {
	if (value === null) return "null";
	return Array.isArray(value) ? "array" : typeof value;
}

function compareText(a: string, b: string): number {
	return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

type Member = [key: string, value: unknown];

function membersOf(value: object): Member[] {
	return Object.entries(value).sort(([a], [b]) => compareText(a, b));
}

function compareMembers([key, value]: Member, [otherKey, otherValue]: Member): number {
	return compareText(key, otherKey) || compareTerms(value, otherValue);
}

function compareLists<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): number {
	for (const [index, item] of a.entries()) {
		if (index >= b.length) return 1;
		const order = compare(item, b[index] as T);
		if (order !== 0) return order;
	}
	return a.length - b.length;
}
