import fc from "fast-check";

/** What is known of a session that somebody else attacks, or its owner. */
export interface Known {
	readonly session: string;
	readonly cursor: string;
	readonly tokens: readonly string[];
}

const control = fc.constantFrom(
	"\r\n",
	"\n",
	"\0",
	"\u0007",
	"\u001b[31m",
	"\u007f",
	"\u0085",
	"\u2028",
	"\ud800",
	"\udfff",
	"é",
	"日本",
	"\t",
);
const traversal = fc.constantFrom(
	"__proto__",
	"constructor",
	"toString",
	"hasOwnProperty",
	"../..",
	"%2e%2e",
	"null",
	"undefined",
	"NaN",
	"1e999",
	"-0",
	"[]",
	"{}",
);

/** Text as it may come in a header or an id: plausible, mangled, or nonsense. */
export function textLike(plausible: readonly string[]): fc.Arbitrary<string> {
	return fc.oneof(
		{ weight: 4, arbitrary: fc.constantFrom(...plausible) },
		{ weight: 2, arbitrary: mangled(plausible) },
		{ weight: 1, arbitrary: traversal },
		{ weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
		{ weight: 1, arbitrary: fc.nat({ max: 9_000 }).map((length) => "x".repeat(length)) },
	);
}

function mangled(plausible: readonly string[]): fc.Arbitrary<string> {
	return fc
		.tuple(
			fc.constantFrom(...plausible),
			fc.nat(),
			fc.oneof(control, traversal, fc.string({ maxLength: 3 })),
			fc.boolean(),
		)
		.map(([text, at, inserted, replaces]) => {
			const index = at % (text.length + 1);
			return text.slice(0, index) + inserted + text.slice(index + (replaces ? inserted.length : 0));
		});
}

/** `Authorization`: of tokens that exist, mangled, of the wrong scheme, or JWTs that confuse. */
export function authorizations({ tokens }: Known): fc.Arbitrary<string> {
	const token = textLike([...tokens, ...tokens.flatMap(confusions)]);
	const scheme = fc.constantFrom("Bearer ", "bearer ", "DPoP ", "Basic ", "Bearer", "Bearer  ", "");
	return fc.tuple(scheme, token).map(([name, value]) => name + value);
}

/** The token under other headers: `alg: none`, HS256, `crit`, `kid` tricks, an ID token's `typ`. */
function confusions(token: string): string[] {
	const [, payload = "", signature = ""] = token.split(".");
	const headers = [
		{ alg: "none", typ: "at+jwt" },
		{ alg: "None", typ: "at+jwt" },
		{ alg: "HS256", typ: "at+jwt" },
		{ alg: "RS256", typ: "at+jwt", crit: ["b64"], b64: false },
		{ alg: "RS256", typ: "at+jwt", kid: "../../../dev/null" },
		{ alg: "RS256", typ: "at+jwt", kid: "__proto__" },
		{ alg: "RS256", typ: "at+jwt", jwk: { kty: "oct", k: "AA" } },
		{ alg: "RS256", typ: "JWT" },
	];
	return headers.flatMap((header) => {
		const encoded = Buffer.from(JSON.stringify(header)).toString("base64url");
		return [`${encoded}.${payload}.${signature}`, `${encoded}.${payload}.`];
	});
}

const id = fc.oneof(
	fc.constantFrom<unknown>(0, 1, 7, "1", "", -1, 1.5, 1e308, null, true, "__proto__"),
	fc.array(fc.nat(), { maxLength: 2 }),
	fc.object({ maxDepth: 1 }),
);
const method = fc.oneof(
	fc.constantFrom<unknown>(
		"initialize",
		"ping",
		"tools/list",
		"tools/call",
		"resources/read",
		"tasks/result",
		"tasks/list",
		"notifications/cancelled",
		"notifications/progress",
		"notifications/initialized",
		"logging/setLevel",
		"__proto__",
		"constructor",
		"",
		"\r\nx: y",
	),
	fc.string({ unit: "binary", maxLength: 20 }),
	fc.constantFrom<unknown>(null, 1, {}),
);
const name = fc.oneof(
	fc.constantFrom<unknown>("search", "fetch", "__proto__", "constructor", "*", "", null, 1),
	fc.string({ unit: "binary", maxLength: 20 }),
);

/** A JSON-RPC message, nearly. */
const message: fc.Arbitrary<unknown> = fc.oneof(
	fc.record(
		{
			jsonrpc: fc.constantFrom<unknown>("2.0", "2.0", "2.0", "1.0", null, 2),
			id,
			method,
			params: fc.oneof(
				fc.record(
					{
						name,
						arguments: fc.object({ maxDepth: 2 }),
						_meta: fc.record({ progressToken: id }, { requiredKeys: [] }),
					},
					{ requiredKeys: [] },
				),
				fc.record(
					{ requestId: id, progressToken: id, progress: fc.double(), reason: fc.string() },
					{ requiredKeys: [] },
				),
				fc.jsonValue(),
			),
			result: fc.oneof(fc.object({ maxDepth: 1 }), fc.constant(null)),
			error: fc.oneof(
				fc.record({ code: fc.oneof(fc.integer(), fc.string()), message: fc.string() }),
				fc.constant("no"),
			),
		},
		{ requiredKeys: [] },
	),
	fc.jsonValue(),
);

/** A body: a message, a batch, something deep, or no JSON at all. */
export const bodies: fc.Arbitrary<string> = fc.oneof(
	{ weight: 6, arbitrary: message.map((value) => JSON.stringify(value) ?? "undefined") },
	{ weight: 2, arbitrary: fc.array(message, { maxLength: 6 }).map((batch) => JSON.stringify(batch)) },
	{
		weight: 1,
		arbitrary: fc
			.integer({ min: 101, max: 3_000 })
			.map((count) => JSON.stringify(Array(count).fill({ jsonrpc: "2.0", id: 1, method: "ping" }))),
	},
	{
		weight: 1,
		arbitrary: fc.integer({ min: 100, max: 50_000 }).map((depth) => "[".repeat(depth) + "]".repeat(depth)),
	},
	{
		weight: 1,
		arbitrary: fc.constantFrom(
			'{"__proto__":{"x":1},"jsonrpc":"2.0","id":1,"method":"ping"}',
			'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
			'{"constructor":{"prototype":{}}}',
			"\ufeff{}",
			"{",
			"",
			"nul",
			'"\\ud800"',
		),
	},
	{ weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 200 }) },
);
