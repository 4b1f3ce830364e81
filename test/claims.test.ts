import { describe, expect, it, test } from "vitest";
import { readBinding, readPresented, whyNoToken } from "../src/claims.ts";

const base = {
	iss: "https://as.example.com",
	sub: "alice",
	client_id: "desktop",
	aud: "https://mcp.example.com",
	exp: 100,
};
const normal = { iss: base.iss, sub: "alice", client_id: "desktop", aud: [base.aud], scope: [], exp: 100 };

// What is other in the claims, and in what is read.
const forms: Record<string, readonly [claims: object, read: object]> = {
	"aud as text": [{}, {}],
	"aud as a list": [{ aud: ["b", "a"] }, { aud: ["a", "b"] }],
	"aud with repetitions": [{ aud: ["b", "a", "b"] }, { aud: ["a", "b"] }],
	"scope as text": [{ scope: "b a" }, { scope: ["a", "b"] }],
	"scope as text with spaces and repetitions": [{ scope: " b  a b " }, { scope: ["a", "b"] }],
	"scope as a list": [{ scope: ["b", "a", "b"] }, { scope: ["a", "b"] }],
	"scope of no characters": [{ scope: "" }, { scope: [] }],
	"scope of one space": [{ scope: " " }, { scope: [] }],
	"only spaces part scopes": [{ scope: "a\tb" }, { scope: ["a\tb"] }],
	"scope that is null": [{ scope: null }, { scope: [] }],
	"scp as a list": [{ scp: ["b", "a"] }, { scope: ["a", "b"] }],
	"scp as text": [{ scp: "b a" }, { scope: ["a", "b"] }],
	"scope before scp": [{ scope: "a", scp: ["b"] }, { scope: ["a"] }],
	"an empty scope before scp": [{ scope: "", scp: ["b"] }, { scope: [] }],
	"a null scope is absent": [{ scope: null, scp: ["b"] }, { scope: ["b"] }],
	"azp for client_id": [{ client_id: undefined, azp: "web" }, { client_id: "web" }],
	"azp for a null client_id": [{ client_id: null, azp: "web" }, { client_id: "web" }],
	"client_id before azp": [{ azp: "web" }, {}],
	"neither client_id nor azp": [{ client_id: undefined }, { client_id: undefined }],
	"neither, said with nulls": [{ client_id: null, azp: null }, { client_id: undefined }],
	cnf: [{ cnf: { jkt: "k" } }, { cnf: { jkt: "k" } }],
	"cnf that is null": [{ cnf: null }, {}],
	"exp that is no integer": [{ exp: 100.5 }, { exp: 100.5 }],
	"claims that data does not name": [{ jti: "1", iat: 5, roles: ["x"], name: "Alice", scopes: "x" }, {}],
	"a claim that data names": [{ org_id: "x" }, { org_id: "x" }],
	"a claim that data names, of any shape": [
		{ org_id: { a: [1, true, null] } },
		{ org_id: { a: [1, true, null] } },
	],
	"a claim that data names, false": [{ org_id: false }, { org_id: false }],
	"a claim that data names, null": [{ org_id: null }, {}],
	"a claim that data names, of the prototype": [Object.create({ org_id: "x" }) as object, {}],
};

describe("claims of a token, in the form of the facts", () => {
	it.each(Object.entries(forms))("%s", (_, [claims, read]) => {
		const given = { ...base, ...claims };
		expect(whyNoToken(given)).toBeUndefined();
		expect(readPresented(given, ["org_id"])).toEqual({ value: { ...normal, ...read } });
	});
});

describe("a binding, in the form of the facts", () => {
	it.each(Object.entries(forms))("%s", (_, [claims, read]) => {
		const { exp: _exp, ...rest } = { ...normal, ...read };
		expect(readBinding({ ...base, ...claims }, ["org_id"])).toEqual({ value: rest });
	});

	it("that is normal is read as itself", () => {
		const { exp: _exp, ...binding } = normal;
		const further = { ...binding, cnf: { jkt: "k" }, org_id: "x" };
		expect(readBinding(further, ["org_id"])).toEqual({ value: further });
	});

	it("may be anonymous, and then it has nothing else", () => {
		expect(readBinding({ anonymous: true }, [])).toEqual({ value: { anonymous: true } });
	});
});

const wrong: Record<string, readonly [claims: object, problem: RegExp]> = {
	"no iss": [{ iss: undefined }, /^\/iss: /],
	"iss that is null": [{ iss: null }, /^\/iss: /],
	"iss of no characters": [{ iss: "" }, /^\/iss: /],
	"no sub": [{ sub: undefined }, /^\/sub: /],
	"sub of no characters": [{ sub: "" }, /^\/sub: /],
	"sub that is a number": [{ sub: 7 }, /^\/sub: /],
	"client_id that is a list": [{ client_id: ["a"] }, /^\/client_id: /],
	"client_id of no characters": [{ client_id: "" }, /^\/client_id: /],
	"azp that is a number": [{ azp: 7 }, /^\/azp: /],
	"aud that is a number": [{ aud: 7 }, /^\/aud: /],
	"aud that is an object": [{ aud: {} }, /^\/aud: /],
	"aud with a null": [{ aud: ["a", null] }, /^\/aud/],
	"aud with an empty text": [{ aud: ["a", ""] }, /^\/aud/],
	"scope that is a number": [{ scope: 7 }, /^\/scope: /],
	"scope with a number": [{ scope: ["a", 7] }, /^\/scope/],
	"scp that is an object": [{ scp: {} }, /^\/scp: /],
	"cnf that is text": [{ cnf: "k" }, /^\/cnf: /],
	"cnf that is a list": [{ cnf: [] }, /^\/cnf: /],
	"cnf with a function": [{ cnf: { jkt: () => "k" } }, /^\/cnf/],
	"a claim that data names with a function": [{ org_id: () => "x" }, /^\/org_id: not JSON/],
	"a claim that data names with a date": [{ org_id: new Date(0) }, /^\/org_id: not JSON/],
	"a claim that data names with a bigint": [{ org_id: 1n }, /^\/org_id: not JSON/],
	"a claim that data names that is not a number": [{ org_id: Number.NaN }, /^\/org_id: not JSON/],
};

describe("claims of the wrong type are named, their values are not", () => {
	it.each(Object.entries(wrong))("%s", (_, [claims, problem]) => {
		const given = { ...base, ...claims };
		for (const reading of [readPresented(given, ["org_id"]), readBinding(given, ["org_id"])]) {
			expect(reading).toEqual({ problem: expect.stringMatching(problem) });
		}
	});
});

describe("claims that are no token's", () => {
	it.each<[string, object, RegExp]>([
		["no exp", { exp: undefined }, /^\/exp: /],
		["exp that is null", { exp: null }, /^\/exp: /],
		["exp that is text", { exp: "100" }, /^\/exp: /],
		["exp that is a boolean", { exp: true }, /^\/exp: /],
		["exp that is not a number", { exp: Number.NaN }, /^\/exp: /],
		["exp that is infinite", { exp: Number.POSITIVE_INFINITY }, /^\/exp: /],
		["exp that is a bigint", { exp: 100n }, /^\/exp: /],
		["no aud", { aud: undefined }, /^\/aud: missing or empty/],
		["aud that is null", { aud: null }, /^\/aud: missing or empty/],
		["aud that is empty", { aud: [] }, /^\/aud: missing or empty/],
		["aud of no characters", { aud: "" }, /^\/aud: missing or empty/],
	])("%s", (_, claims, why) => {
		expect(whyNoToken({ ...base, ...claims })).toMatch(why);
	});
});

test.each<[string, object]>([
	["anonymous and somebody's", { ...base, anonymous: true }],
	["not anonymous, said so", { ...base, anonymous: false }],
	["anonymous as text", { anonymous: "true" }],
	["anonymous with another claim", { anonymous: true, iat: 5 }],
	["nothing", {}],
	["only a name", { sub: "alice" }],
])("no binding: %s", (_, claims) => {
	expect(readBinding({ ...claims } as Record<string, unknown>, [])).toHaveProperty("problem");
});
