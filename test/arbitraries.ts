import fc from "fast-check";
import type { Claims, EventInput, Label, Moment, NeedInput, PolicyData } from "../src/index.ts";

// A small world, so that random data, bindings and tokens meet: an aggregate, what lies below it, names of one's
// own and of others.
const INDICATORS = [
	"https://rs.example",
	"https://rs.example/tools/a",
	"https://rs.example/tools/b",
	"https://rs.example/tools/b/deep",
	"https://files.example",
	"https://other.example",
	"mcp://a",
	"mcp://b",
];
const ENTRIES = [
	...INDICATORS,
	"https://rs.example/tools/*",
	"https://rs.example/tools/b/*",
	"https://rs.example/*",
];
const SCOPES = ["r", "w", "x"];
const TOOLS = ["a", "b", "c"];
const METHODS = ["resources/read", "prompts/get", "tasks/result"];

/** Each value at most once, in any order. */
function some<T>(values: readonly T[], minLength = 0, maxLength = values.length): fc.Arbitrary<T[]> {
	return fc.shuffledSubarray([...values], { minLength, maxLength });
}

const need = fc.record({
	aud: fc.oneof(
		{ weight: 3, arbitrary: some(INDICATORS, 0, 1) },
		{ weight: 1, arbitrary: some(INDICATORS, 0, 3) },
	),
	scope: fc.oneof({ weight: 3, arbitrary: some(SCOPES, 0, 1) }, { weight: 1, arbitrary: some(SCOPES) }),
});
const needs = (names: readonly string[]) =>
	some([...names, "*"]).chain((mapped) => fc.record(Object.fromEntries(mapped.map((name) => [name, need]))));

export const NOW = 1_796_000_000;

export const policyData: fc.Arbitrary<PolicyData> = fc.record({
	profile: fc.constantFrom("strict", "covering", "per-tool"),
	replay: fc.constantFrom("atomic", "prefix"),
	foreign_principal: fc.constantFrom("end", "keep"),
	anonymous: fc.boolean(),
	resources: some(INDICATORS.slice(0, 5), 1, 3),
	tools: needs(TOOLS),
	methods: needs(METHODS),
	session_need: fc.oneof(
		{ weight: 3, arbitrary: fc.constant({ aud: [] as string[], scope: [] as string[] }) },
		{ weight: 1, arbitrary: need },
	),
	coverage: some(INDICATORS, 0, 3).chain((keys) =>
		fc.record(Object.fromEntries(keys.map((key) => [key, some(ENTRIES, 0, 3)]))),
	),
	aliases: some(INDICATORS, 0, 5)
		.map((names) => (names.length < 4 ? [names] : [names.slice(0, 2), names.slice(2)]))
		.map((sets) => sets.filter((set) => set.length > 1)),
});

const subject: fc.Arbitrary<{ tool?: string; rpc?: string }> = fc.oneof(
	fc.record({ tool: fc.constantFrom(...TOOLS) }),
	fc.record({ rpc: fc.constantFrom(...METHODS) }),
	fc.constant({}),
);
export const label: fc.Arbitrary<Label> = fc
	.tuple(subject, need)
	.map(([what, lacks]) => ({ ...what, ...lacks }));
const call: fc.Arbitrary<NeedInput> = fc
	.tuple(label, fc.option(fc.oneof(fc.integer(), fc.string()), { nil: undefined }))
	.map(([what, id]) => (id === undefined ? what : { ...what, request_id: id }));

/** Events of a few calls, interleaved, with ids in order. */
export const pendingEvents: fc.Arbitrary<EventInput[]> = fc
	.array(call, { minLength: 1, maxLength: 3 })
	.chain((calls) => fc.array(fc.constantFrom(...calls), { maxLength: 8 }))
	.map((events) => events.map((event, index) => ({ ...event, id: `s.${index + 1}` })));

const alice = { iss: "https://as.example", sub: "alice", client_id: "desktop" };
const audience = fc.oneof(some(INDICATORS.slice(0, 5), 1, 2), some(INDICATORS, 1, 4));

// Mostly the same principal, in ways that profiles tell apart.
const principals = fc
	.record({
		recorded: audience,
		presented: audience,
		same: fc.constantFrom("aud", "aud", "none"),
		recordedScope: some(SCOPES, 0, 2),
		presentedScope: some(SCOPES, 0, 2),
		sub: fc.oneof(
			{ weight: 9, arbitrary: fc.constant("alice") },
			{ weight: 1, arbitrary: fc.constant("mallory") },
		),
		age: fc.oneof({ weight: 9, arbitrary: fc.constant(-60) }, { weight: 1, arbitrary: fc.constant(60) }),
	})
	.map(({ recorded, presented, same, recordedScope, presentedScope, sub, age }) => ({
		binding: { ...alice, aud: recorded, scope: recordedScope },
		presented: {
			...alice,
			sub,
			aud: same === "aud" ? recorded : presented,
			scope: [...new Set([...presentedScope, ...recordedScope])],
			exp: NOW - age,
		},
	}));

/** A question with the moment that it is for. */
export interface Asked {
	readonly moment: Moment;
	readonly question: {
		readonly now: number;
		readonly request: { readonly method: string; readonly transport: string; readonly session: string };
		readonly session?: { readonly binding: Claims; readonly transport: string; readonly opened_at: number };
		readonly presented: Claims;
		readonly pending?: readonly EventInput[];
		readonly open?: readonly NeedInput[];
		readonly event?: NeedInput;
		readonly reference?: Label;
	};
}

const positions = fc.oneof(
	{ weight: 8, arbitrary: fc.constant("retained") },
	{ weight: 1, arbitrary: fc.constantFrom("evicted", "ahead", "foreign", "unknown") },
);

const resumes = fc.record({
	moment: fc.constant("resume" as const),
	method: fc.constant("GET"),
	about: fc.record({
		cursor: fc.record({ last_event_id: fc.constant("s.0"), position: positions }),
		pending: pendingEvents,
		open: fc.array(call, { maxLength: 2 }),
	}),
});

const moments = fc.oneof(
	fc.record({
		moment: fc.constant("session" as const),
		method: fc.constantFrom("GET", "POST", "DELETE"),
		about: fc.constant({ rpc: "ping" }),
	}),
	fc.record({
		moment: fc.constant("call" as const),
		method: fc.constant("POST"),
		about: fc.oneof(
			fc.record({ tool: fc.constantFrom(...TOOLS) }),
			fc.record({ rpc: fc.constantFrom(...METHODS) }),
			fc.record({ reference: label }),
		),
	}),
	resumes,
	fc.record({
		moment: fc.constant("delivery" as const),
		method: fc.constantFrom("GET", "POST"),
		about: fc.record({ event: call }),
	}),
);

function askedOf(moment: typeof moments): fc.Arbitrary<Asked> {
	return fc
		.tuple(moment, principals, fc.constantFrom("known", "known", "known", "none"))
		.map(([{ moment, method, about }, { binding, presented }, session]) => ({
			moment,
			question: {
				now: NOW,
				request: {
					// Without a session there is nothing to GET.
					method: moment === "delivery" && session === "none" ? "POST" : method,
					transport: "streamable-http",
					session,
				},
				...(session === "known" && {
					session: { binding, transport: "streamable-http", opened_at: NOW - 600 },
				}),
				presented,
				...about,
			},
		}));
}

/** A question with a token, mostly in a session. */
export const asked = askedOf(moments);

/** The same, of a resume. */
export const askedResume = askedOf(resumes as typeof moments);
