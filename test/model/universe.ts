import type { Label, PolicyData } from "../../src/generated/types.ts";
import type { Need } from "./reference/question.ts";

/** A small world of names: what tools need, and every token that an authorization server could mint for them. */
export interface Universe {
	readonly name: string;
	readonly data: PolicyData;
	/** Every audience (not empty) with every scope. */
	readonly tokens: readonly Need[];
	readonly tools: readonly string[];
	/** Whether the tools may change places: then sequences are told apart only by where tools are equal. */
	readonly isSymmetric: boolean;
}

const SERVER = "https://mcp.example.com";
const FOREIGN = "https://other.example.com";
const [A, B, C] = [`${SERVER}/tools/a`, `${SERVER}/tools/b`, `${SERVER}/tools/c`] as const;
const coverage = { [SERVER]: [`${SERVER}/tools/*`] };

/** Three tools under indicators of their own, an aggregate that stands for them, and another server's indicator. */
export const audiences: Universe = {
	name: "audiences",
	data: {
		resources: [SERVER],
		coverage,
		tools: { a: { aud: [A], scope: [] }, b: { aud: [B], scope: [] }, c: { aud: [C], scope: [] } },
	},
	tokens: tokensOf([SERVER, A, B, C, FOREIGN], []),
	tools: ["a", "b", "c"],
	isSymmetric: true,
};

/** Scopes beside audiences: a tool that needs both, one that needs a scope only, one that needs the aggregate. */
export const scopes: Universe = {
	name: "scopes",
	data: {
		resources: [SERVER],
		coverage,
		tools: { a: { aud: [A], scope: ["x"] }, b: { aud: [], scope: ["y"] }, c: { aud: [SERVER], scope: [] } },
	},
	tokens: tokensOf([SERVER, A, FOREIGN], ["x", "y"]),
	tools: ["a", "b", "c"],
	isSymmetric: false,
};

/** An aggregate with two names, a tool that needs nothing, and one that no token of this server could have. */
export const aliases: Universe = {
	name: "aliases",
	data: {
		resources: [SERVER],
		coverage,
		aliases: [[SERVER, "mcp://srv"]],
		session_need: { aud: [], scope: ["y"] },
		tools: { a: { aud: [A], scope: [] }, b: { aud: ["mcp://srv"], scope: [] }, c: { aud: [], scope: [] } },
	},
	tokens: tokensOf([SERVER, "mcp://srv", A, FOREIGN], ["y"]),
	tools: ["a", "b", "c", "gone"],
	isSymmetric: false,
};

export const universes: readonly Universe[] = [audiences, scopes, aliases];

/** What is stored with the events of a tool. One that data does not map keeps what it once needed. */
export function labelOf({ data }: Universe, tool: string): Label {
	const { aud, scope } = data.tools?.[tool] ?? { aud: [FOREIGN], scope: [] };
	return { tool, aud: [...aud], scope: [...scope] };
}

export const PROFILES = ["strict", "covering", "per-tool"] as const;
export const REPLAYS = ["atomic", "prefix"] as const;

/** All sequences of exactly that length; with symmetry, one of each that differ by a renaming only. */
export function sequencesOf<T>(values: readonly T[], length: number, isSymmetric: boolean): T[][] {
	if (length === 0) return [[]];
	return sequencesOf(values, length - 1, isSymmetric).flatMap((sequence) => {
		const next = isSymmetric ? values.slice(0, new Set(sequence).size + 1) : values;
		return next.map((value) => [...sequence, value]);
	});
}

export function subsetsOf<T>(values: readonly T[]): T[][] {
	const [first, ...others] = values;
	if (first === undefined) return [[]];
	return subsetsOf(others).flatMap((set) => [set, [first, ...set]]);
}

function tokensOf(indicators: readonly string[], scopes: readonly string[]): Need[] {
	return subsetsOf(indicators)
		.filter((aud) => aud.length > 0)
		.flatMap((aud) => subsetsOf(scopes).map((scope) => ({ aud, scope })));
}
