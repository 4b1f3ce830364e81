import fc from "fast-check";
import type { PolicyData } from "../../src/generated/types.ts";
import type { Moment } from "./reference/decide.ts";
import type { Question } from "./reference/question.ts";

// Few names, so that data, bindings and tokens meet; those that parsers read in more than one way among them.
const INDICATORS = [
	"https://rs.example",
	"https://rs.example/tools/a",
	"https://rs.example/tools/b",
	"https://rs.example/tools/b/deep",
	"https://rs.example/tools-b",
	"https://files.example",
	"https://other.example",
	"mcp://a",
	"mcp://b",
	"urn:rs",
];
const ODD = [
	"https://rs.example/tools/",
	"https://rs.example/tools/../a",
	"https://rs.example/tools/b/..",
	"https://rs.example/tools/%2E%2e/a",
	"https://rs.example/tools/.%2e",
	"https://rs.example/tools/...",
	"https://rs.example/tools/a.b",
	"https://rs.example/tools/a%20b",
	"https://rs.example/tools/a%2Fb",
	"https://rs.example/tools/a%5cb",
	"https://rs.example/tools/a%2",
	"https://rs.example/tools/a%zz",
	"https://rs.example/tools//b",
	"https://rs.example/tools/b/",
	"https://rs.example/tools/b?x",
	"https://rs.example/tools/b#x",
	"https://rs.example/tools/b c",
	"https://rs.example/tools/é",
	"https://rs.example/tools/*",
	"https://rs.example/Tools/a",
	"https://rs.example:443/tools/a",
	"https://rs.example.evil.example/tools/a",
];
const ENTRIES = [
	"https://rs.example/tools/*",
	"https://rs.example/tools/b/*",
	"https://rs.example/*",
	"https://files.example/*",
];
const SCOPES = ["r", "w", "x"];
const TOOLS = ["a", "b", "c", "constructor"];
const METHODS = ["resources/read", "prompts/get", "tasks/result", "__proto__"];
const CLAIMS = ["org_id", "act", "tenant"];
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
	"undecided",
	"covered",
];

export const NOW = 1_796_000_000;

/** Each value at most once, in any order. */
function some<T>(values: readonly T[], minLength = 0, maxLength = values.length): fc.Arbitrary<T[]> {
	return fc.shuffledSubarray([...values], { minLength, maxLength });
}

function mostly<T>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<T>, weight = 4): fc.Arbitrary<T> {
	return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: other });
}

/** With the member, or without. */
function maybe<T extends object>(member: fc.Arbitrary<T>): fc.Arbitrary<Partial<T>> {
	return fc.oneof(member, fc.constant({}));
}

const indicator = fc.constantFrom(...INDICATORS, ...ODD);
const need = fc.record({
	aud: mostly(some(INDICATORS, 0, 1), some(INDICATORS, 0, 3), 3),
	scope: mostly(some(SCOPES, 0, 1), some(SCOPES), 3),
});
const nothing = fc.constant({ aud: [] as string[], scope: [] as string[] });

function mapped<V>(names: readonly string[], value: fc.Arbitrary<V>): fc.Arbitrary<Record<string, V>> {
	return some(names).chain((keys) =>
		fc
			.array(value, { minLength: keys.length, maxLength: keys.length })
			// Names such as `__proto__` are names.
			.map((values) => Object.fromEntries(keys.map((key, index) => [key, values[index] as V]))),
	);
}

export const policyData: fc.Arbitrary<PolicyData> = fc.record({
	profile: fc.constantFrom("strict", "covering", "per-tool"),
	replay: fc.constantFrom("atomic", "prefix"),
	foreign_principal: fc.constantFrom("end", "keep"),
	anonymous: fc.boolean(),
	clock_skew: fc.constantFrom(0, 30, 300),
	identity_claims: mostly(fc.constant([] as string[]), some(CLAIMS, 1, 2), 2),
	resources: some(INDICATORS.slice(0, 7), 1, 3),
	tools: mapped([...TOOLS, "*"], need),
	methods: mapped([...METHODS, "*"], need),
	session_need: mostly(nothing, need, 3),
	coverage: some([...INDICATORS, "constructor"], 0, 4).chain((keys) =>
		mapped(keys, some([...INDICATORS, ...ENTRIES], 0, 4)),
	),
	aliases: some(INDICATORS, 0, 5)
		.map((names) => (names.length < 4 ? [names] : [names.slice(0, 2), names.slice(2)]))
		.map((sets) => sets.filter((set) => set.length > 1)),
	status: mostly(
		fc.constant({} as Record<string, number>),
		mapped(CODES, fc.integer({ min: 400, max: 599 })),
		2,
	),
});

const subject = fc.oneof(
	fc.record({ tool: fc.constantFrom(...TOOLS) }),
	fc.record({ rpc: fc.constantFrom(...METHODS) }),
	fc.constant({}),
);
const wants = mostly(
	need,
	fc.record({ aud: fc.array(indicator, { maxLength: 3 }), scope: fc.array(fc.constantFrom(...SCOPES)) }),
);
const label = fc.tuple(subject, wants).map(([what, needed]) => ({ ...what, ...needed }));
const requestId = fc.oneof(fc.integer(), fc.string(), fc.constant("1"), fc.constant(1));
const call = fc
	.tuple(label, maybe(fc.record({ request_id: requestId })))
	.map(([what, id]) => ({ ...what, ...id }));

/** Events of a few calls, interleaved, with ids in order. */
const pending = fc
	.array(call, { minLength: 1, maxLength: 4 })
	.chain((calls) => fc.array(fc.constantFrom(...calls), { maxLength: 12 }))
	.map((events) => events.map((event, index) => ({ ...event, id: `s.${index + 1}` })));

// What order and repetition there is must not matter.
const audience = fc.oneof(
	some(INDICATORS.slice(0, 5), 1, 3),
	fc.array(fc.constantFrom(...INDICATORS), { minLength: 1, maxLength: 5 }),
	fc.array(indicator, { minLength: 1, maxLength: 3 }),
);
const scopes = fc.array(fc.constantFrom(...SCOPES), { maxLength: 3 });
const json = fc.oneof(
	fc.constantFrom("o1", "o2", 1, true, null),
	fc.record({ sub: fc.constantFrom("x", "y") }),
	fc.array(fc.constantFrom("p", "q"), { maxLength: 2 }),
);
const further = maybe(fc.record({ org_id: json, act: json }));
const cnf = maybe(fc.record({ cnf: fc.record({ jkt: fc.constantFrom("k1", "k2") }) }));

/** The same scope as hosts write it. */
const written = (scope: readonly string[]) =>
	fc.constantFrom<Record<string, unknown>>({ scope }, { scope: scope.join(" ") }, { scp: scope });

/** The claims of the binding and of the token: mostly one principal, in ways that profiles tell apart. */
const principals = fc
	.record({
		recorded: audience,
		presented: audience,
		sameAudience: fc.boolean(),
		recordedScope: scopes,
		presentedScope: scopes,
		wider: mostly(fc.constant(true), fc.constant(false), 3),
		drift: mostly(
			fc.constant({}),
			fc.constantFrom<Record<string, unknown>>(
				{ sub: "mallory" },
				{ iss: "https://evil.example" },
				{ client_id: "other" },
				{ client_id: null },
				{ azp: "other" },
				{ cnf: { jkt: "k2" } },
				{ cnf: null },
				{ org_id: "o2" },
				{ act: { sub: "y" } },
			),
			6,
		),
		further,
		cnf,
		client: maybe(fc.record({ client_id: fc.constant("desktop") })),
		exp: mostly(fc.constant(NOW + 60), fc.constantFrom(NOW - 60, NOW - 30, NOW - 29.5, NOW, NOW - 301), 8),
	})
	.chain((given) => {
		const { recorded, presented, sameAudience, recordedScope, presentedScope, wider } = given;
		const identity = {
			iss: "https://as.example",
			sub: "alice",
			...given.client,
			...given.cnf,
			...given.further,
		};
		const scope = wider ? [...presentedScope, ...recordedScope] : presentedScope;
		return fc.record({
			binding: written(recordedScope).map((scope) => ({ ...identity, aud: recorded, ...scope })),
			presented: fc.tuple(written(scope), fc.boolean()).map(([scope, single]) => {
				const aud = sameAudience ? recorded : presented;
				return {
					...identity,
					...given.drift,
					aud: single && aud.length === 1 ? aud[0] : aud,
					...scope,
					exp: given.exp,
				};
			}),
		});
	});

const positions = mostly(
	fc.constant("retained" as const),
	fc.constantFrom("evicted" as const, "ahead" as const, "foreign" as const, "unknown" as const),
	5,
);

type Moments = { moment: Moment; method: "GET" | "POST" | "DELETE"; about: Partial<Question> };
const moments: fc.Arbitrary<Moments> = fc.oneof(
	{
		weight: 1,
		arbitrary: fc.record({
			moment: fc.constant("session" as const),
			method: fc.constantFrom("GET" as const, "POST" as const, "DELETE" as const),
			about: maybe(fc.record({ rpc: fc.constantFrom("initialize", "ping", "tools/list") })),
		}),
	},
	{
		weight: 2,
		arbitrary: fc.record({
			moment: fc.constant("call" as const),
			method: fc.constant("POST" as const),
			about: fc.oneof(
				fc.record({ tool: fc.constantFrom(...TOOLS) }),
				fc.record({ rpc: fc.constantFrom(...METHODS) }),
				fc.record({ reference: label }),
			),
		}),
	},
	{
		weight: 3,
		arbitrary: fc.record({
			moment: fc.constant("resume" as const),
			method: fc.constant("GET" as const),
			about: fc.record({
				cursor: fc.record({ last_event_id: fc.constantFrom("s.0", "", "x"), position: positions }),
				pending,
				open: fc.array(call, { maxLength: 3 }),
			}),
		}),
	},
	{
		weight: 2,
		arbitrary: fc.record({
			moment: fc.constant("delivery" as const),
			method: fc.constantFrom("GET" as const, "POST" as const),
			about: fc.record({
				event: fc
					.tuple(call, maybe(fc.record({ event_id: fc.constant("s.1") })))
					.map(([event, id]) => ({ ...event, ...id })),
			}),
		}),
	},
);

const extras = mostly(
	fc.constant({}),
	fc.record(
		{
			id: fc.constantFrom("free" as const, "in_use" as const),
			quota: fc.constantFrom("left" as const, "exceeded" as const),
		},
		{ requiredKeys: [] },
	),
	2,
);

/** A question with the moment that it is for. */
export interface Asked {
	readonly moment: Moment;
	readonly question: Question;
}

export const asked: fc.Arbitrary<Asked> = fc
	.record({
		given: moments,
		who: principals,
		session: fc.constantFrom("known", "known", "known", "known", "none", "unknown"),
		anonymous: mostly(fc.constant(false), fc.constant(true)),
		token: mostly(fc.constant(true), fc.constant(false)),
		transport: mostly(fc.constant("streamable-http" as const), fc.constant("sse" as const)),
		extras,
	})
	.map(({ given, who, session, anonymous, token, transport, extras }) => {
		const { moment, method, about } = given;
		return {
			moment,
			question: {
				now: NOW,
				request: { method, transport, session, ...extras },
				...(session === "known" && {
					session: {
						binding: anonymous ? { anonymous: true } : who.binding,
						transport,
						opened_at: NOW - 600,
					},
				}),
				// The token of an anonymous session is mostly none.
				...(token !== anonymous && { presented: who.presented }),
				...about,
			} as Question,
		};
	});
