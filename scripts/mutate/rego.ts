import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runOpa } from "../opa.ts";
import { type Change, type Mutant, mutantsOf } from "./mutant.ts";

// Mutants of Rego, by the positions that OPA's own parser gives.

interface Node {
	readonly location?: { readonly row: number; readonly col: number; readonly text?: string };
	readonly type?: string;
	readonly value?: unknown;
	readonly terms?: unknown;
	readonly negated?: boolean;
	readonly [member: string]: unknown;
}

interface Rule extends Node {
	readonly head: Node & { readonly name?: string; readonly ref?: readonly Node[]; readonly value?: Node };
	readonly body: readonly Node[];
	readonly else?: Rule;
}

/** All mutants of a Rego file. */
export async function mutateRego(file: string): Promise<Mutant[]> {
	const braced = await withBraces(readFileSync(file, "utf8"));
	const rules = await parse(braced);
	return mutantsOf(
		file,
		braced,
		rules.flatMap((rule) => changesOfRule(rule, braced)),
	);
}

async function parse(text: string): Promise<Rule[]> {
	const folder = mkdtempSync(join(tmpdir(), "rego-"));
	try {
		const path = join(folder, "mutated.rego");
		writeFileSync(path, text);
		const printed = await runOpa(["parse", "--format", "json", "--json-include", "locations", path]);
		return (JSON.parse(printed) as { rules?: Rule[] }).rules ?? [];
	} finally {
		rmSync(folder, { recursive: true });
	}
}

/** OPA says where the expressions of a body are only if it is in braces. */
async function withBraces(text: string): Promise<string> {
	const bare = (await parse(text))
		.flatMap((rule) => branchesOf(rule, text))
		.flatMap(({ body }) => (body !== undefined && !body.isBraced ? [body] : []));
	return bare
		.sort((a, b) => b.start - a.start)
		.reduce(
			(changed, { start, end }) =>
				`${changed.slice(0, start)}{\n\t${changed.slice(start, end)}\n}${changed.slice(end)}`,
			text,
		);
}

interface Span {
	readonly start: number;
	readonly end: number;
}

/** A definition, or one `else` of it. */
interface Branch {
	/** The value's text; `undefined`: `true`, which is not written. */
	readonly value: Span | undefined;
	readonly body: (Span & { readonly isBraced: boolean }) | undefined;
	readonly expressions: readonly Node[];
}

function branchesOf(rule: Rule, text: string): Branch[] {
	const whole = spanOf(rule, text);
	const chain: Rule[] = [];
	for (let branch: Rule | undefined = rule; branch !== undefined; branch = branch.else) chain.push(branch);
	return chain.map(({ head, body, else: next }, index) => {
		const start = index === 0 ? whole.start : spanOf(chain[index] as Rule, text).start;
		const end = next === undefined ? whole.end : spanOf(next, text).start;
		const own = text.slice(start, end).trimEnd();
		const [, before = ""] = /^((?:else\b|[a-z_]+(?:\([^)]*\))?(?: contains \w+)?)\s*)/.exec(own) ?? [];
		const hasValue = own.slice(before.length).startsWith(":=");
		const rest = { start: start + before.length + ":= ".length, end: start + own.length };
		const value = hasValue && head.value !== undefined ? (placeOf(head.value, text) ?? rest) : undefined;
		const from = value?.end ?? start + before.length;
		const [intro = ""] = /^\s*if\s+/.exec(text.slice(from, start + own.length)) ?? [];
		if (intro === "") return { value, body: undefined, expressions: [] };
		const at = from + intro.length;
		if (text[at] !== "{") {
			return { value, body: { start: at, end: start + own.length, isBraced: false }, expressions: [] };
		}
		const inner = { start: at + 1, end: text.lastIndexOf("}", start + own.length) };
		return { value, body: { ...inner, isBraced: true }, expressions: body };
	});
}

/** Where a node is; `undefined`: OPA does not say, or says it of the node around it. */
function placeOf({ location }: Node, text: string): Span | undefined {
	if (location?.text === undefined) return undefined;
	const { row, col } = location;
	const source = Buffer.from(location.text, "base64").toString("utf8");
	let start = 0;
	for (let line = 1; line < row; line++) start = text.indexOf("\n", start) + 1;
	start += col - 1;
	const end = start + source.length;
	return text.slice(start, end) === source ? { start, end } : undefined;
}

function isPlaced(node: Node, text: string): boolean {
	return placeOf(node, text) !== undefined;
}

function spanOf(node: Node, text: string): Span {
	const place = placeOf(node, text);
	if (place === undefined) throw new Error(`a node that is nowhere: ${JSON.stringify(node)}`);
	return place;
}

const OUTCOMES = ["proceed", "reauthenticate", "reauthorize", "reinitialize", "reissue", "refuse"];
const CODES = [
	"token_missing",
	"token_expired",
	"session_unknown",
	"session_required",
	"principal_drift",
	"binding_drift",
	"tool_unmapped",
	"request_id_in_use",
	"quota_exceeded",
	"cursor_unknown",
	"cursor_evicted",
	"cursor_ahead",
	"audience_not_covered",
	"scope_not_covered",
	"covered",
	"undecided",
];
/** A word becomes the next of its kind. */
const KINDS = [
	OUTCOMES,
	CODES,
	["keep", "end"],
	["strict", "covering", "per-tool"],
	["atomic", "prefix"],
	["none", "unknown", "known"],
	["retained", "evicted", "ahead", "foreign", "unknown"],
	["GET", "POST", "DELETE"],
	["sse", "streamable-http"],
	["free", "in_use"],
	["left", "exceeded"],
	["session", "call", "resume", "delivery"],
	["aud", "scope"],
	["tool", "rpc", "event_id", "request_id"],
];

const OPERATORS: Readonly<Record<string, readonly string[]>> = {
	"==": ["!="],
	"!=": ["=="],
	"<": ["<=", ">"],
	"<=": ["<", ">"],
	">": [">=", "<"],
	">=": [">", "<"],
	"+": ["-"],
	"-": ["+"],
	"|": ["&"],
};

/** Functions that are wider, and those that are taken for their first argument. */
const WIDER: Readonly<Record<string, string>> = { startswith: "contains", endswith: "contains" };
const LEFT_OUT = new Set([
	"sort",
	"lower",
	"trim_suffix",
	"trim_prefix",
	"trim_left",
	"substring",
	"replace",
	"concat",
	"array.concat",
	"object.union",
	"object.union_n",
	"object.filter",
]);

function changesOfRule(rule: Rule, text: string): Change[] {
	const within = String(rule.head.name ?? rule.head.ref?.[0]?.value ?? "");
	const branches = branchesOf(rule, text);
	const inBranches = branches.flatMap(({ value, body, expressions }): Change[] => {
		if (body === undefined) return [];
		// `x if x`: without the condition the value is undefined all the same.
		const isValueItself =
			value !== undefined && text.slice(value.start, value.end) === text.slice(body.start, body.end).trim();
		if (isValueItself) {
			return [{ within, operator: "never", replacement: " false ", start: body.start, end: body.end }];
		}
		return [
			{ within, operator: "never", replacement: " false ", start: body.start, end: body.end },
			// One condition that is left out is the same.
			...(expressions.length > 1
				? [{ within, operator: "always", replacement: " true ", start: body.start, end: body.end }]
				: []),
			...expressions.flatMap((expression) => changesOfExpression(expression, text, within)),
		];
	});
	const values = branches.flatMap((_, index) => {
		let branch: Rule | undefined = rule;
		for (let i = 0; i < index; i++) branch = branch?.else;
		return branch?.head.value === undefined ? [] : changesOfTerm(branch.head.value, text, within, false);
	});
	return [...inBranches, ...values, ...changesOfOrder(rule, branches, text, within)];
}

/** Branches in another order, or without one of them. */
function changesOfOrder(rule: Rule, branches: readonly Branch[], text: string, within: string): Change[] {
	// In another order it is true as often.
	if (branches.length < 2 || branches.every(({ value }) => value === undefined)) return [];
	const span = spanOf(rule, text);
	const [prefix = ""] = /^[a-z_]+(?:\([^)]*\))?/.exec(text.slice(span.start)) ?? [];
	const render = (order: readonly Branch[]) =>
		prefix +
		order
			.map(({ value, body }) => {
				const is = value === undefined ? "" : ` := ${text.slice(value.start, value.end)}`;
				const when = body === undefined ? "" : ` if {${text.slice(body.start, body.end)}}`;
				return is === "" && when === "" ? " := true" : is + when;
			})
			.join("\n\nelse");
	return branches.flatMap((_, index) => {
		const without = branches.filter((_, other) => other !== index);
		const swapped = [...branches];
		const [first, second] = [branches[index], branches[index + 1]];
		// A condition that is never met leaves a branch out, too.
		const changes =
			branches[index]?.body === undefined
				? [{ operator: `without branch ${index + 1}`, replacement: render(without) }]
				: [];
		if (first !== undefined && second !== undefined) {
			swapped.splice(index, 2, second, first);
			changes.push({
				operator: `branches ${index + 1} and ${index + 2} swapped`,
				replacement: render(swapped),
			});
		}
		return changes.map((change) => ({ within, ...change, ...span }));
	});
}

function changesOfExpression(expression: Node, text: string, within: string): Change[] {
	const span = spanOf(expression, text);
	const source = text.slice(span.start, span.end);
	const change = (operator: string, replacement: string): Change => ({
		within,
		operator,
		replacement,
		...span,
	});
	const isDeclaration = /^some\b/.test(source) || source.includes(":=");
	const every = /^every (.*?) in (.*?) \{([\s\S]*)\}$/.exec(source);
	return [
		change("without a condition", "true"),
		...(expression.negated ? [change("not negated", source.replace(/^not\s+/, ""))] : []),
		...(expression.negated || isDeclaration || every ? [] : [change("negated", `not ${source}`)]),
		...(every ? [change("some for every", `some ${every[1]} in ${every[2]}\n${every[3]}`)] : []),
		...changesOfTerm(expression, text, within, false),
	];
}

function changesOfTerm(node: unknown, text: string, within: string, isKey: boolean): Change[] {
	if (Array.isArray(node)) return node.flatMap((one) => changesOfTerm(one, text, within, isKey));
	if (typeof node !== "object" || node === null) return [];
	const term = node as Node;
	const changes: Change[] = [];
	if (isPlaced(term, text) && typeof term.type === "string") {
		changes.push(...changesOfValue(term, text, within, isKey));
	}
	// Bodies within: of `every` and of comprehensions.
	for (const [member, inner] of Object.entries(term)) {
		if (member === "location" || member === "type") continue;
		if (member === "body" && Array.isArray(inner)) {
			changes.push(
				...(inner as Node[]).flatMap((expression) => changesOfExpression(expression, text, within)),
			);
		} else if (term.type === "object" && member === "value") {
			for (const [key, value] of inner as [Node, Node][]) {
				changes.push(...changesOfTerm(key, text, within, true), ...changesOfTerm(value, text, within, false));
			}
		} else changes.push(...changesOfTerm(inner, text, within, isKey));
	}
	return changes;
}

function changesOfValue(term: Node, text: string, within: string, isKey: boolean): Change[] {
	const span = spanOf(term, text);
	const source = text.slice(span.start, span.end);
	const change = (operator: string, replacement: string): Change => ({
		within,
		operator,
		replacement,
		...span,
	});
	switch (term.type) {
		case "string":
			if (isKey || !source.startsWith('"')) return [];
			return wordsInPlaceOf(JSON.parse(source) as string).map((word) =>
				change("another word", JSON.stringify(word)),
			);
		case "number":
			return [change("another number", String(Number(source) + 1))];
		case "boolean":
			return source === "true" || source === "false"
				? [change("the other", source === "true" ? "false" : "true")]
				: [];
		case "ref":
			return (OPERATORS[source] ?? []).map((operator) => change("another operator", operator));
		case "array":
		case "set": {
			const members = (term.value as Node[]).map((member) => spanOf(member, text));
			const [open, close] = [source[0], source.at(-1)];
			const around = (kept: readonly Span[]) =>
				`${open}${kept.map(({ start, end }) => text.slice(start, end)).join(", ")}${close}`;
			if (members.length < 2) return [];
			return members.map((_, index) =>
				change("without an element", around(members.filter((_, other) => other !== index))),
			);
		}
		case "object": {
			const members = term.value as [Node, Node][];
			return members.map((_, index) => {
				const kept = members.filter((_, other) => other !== index);
				const parts = kept.map(([key, value]) => {
					const [from, to] = [spanOf(key, text), spanOf(value, text)];
					return text.slice(from.start, to.end);
				});
				return change("without a member", `{${parts.join(", ")}}`);
			});
		}
		case "call":
			return changesOfCall(term, source, text, change);
		default:
			return [];
	}
}

function wordsInPlaceOf(word: string): string[] {
	const kinds = KINDS.filter((kind) => kind.includes(word));
	const next = kinds.map((kind) => kind[(kind.indexOf(word) + 1) % kind.length] ?? "");
	return kinds.length > 0 ? next : [word === "" ? "x" : word.slice(0, -1)];
}

function changesOfCall(
	term: Node,
	source: string,
	text: string,
	change: (operator: string, replacement: string) => Change,
): Change[] {
	const [called, ...args] = term.value as Node[];
	if (called === undefined) return [];
	const { end } = spanOf(called, text);
	const name = text.slice(spanOf(called, text).start, end);
	const texts = args.map((argument) => {
		const span = spanOf(argument, text);
		return text.slice(span.start, span.end);
	});
	return [
		...(WIDER[name] !== undefined
			? [change("a wider match", source.replace(name, WIDER[name] ?? name))]
			: []),
		...(LEFT_OUT.has(name)
			? texts.map((argument) => change(`${name} left out`, argument)).slice(0, name === "concat" ? 0 : 2)
			: []),
	];
}
