import { z } from "zod";
import { readOnce } from "./frozen.ts";
import type { Binding, Presented } from "./generated/types.ts";

/** The claims of a verified token as a host has them: a JWT payload (RFC 9068), or an introspection response (RFC 7662). */
export type Claims = Readonly<Record<string, unknown>>;

/** Claims, or why they are none. */
export type Reading<T> = { readonly value: T } | { readonly problem: string };

const text = z.string().min(1);
const list = z.array(z.string());
const optional = <T extends z.ZodType>(type: T) => type.nullish();

const principal = {
	iss: text,
	sub: text,
	client_id: optional(text),
	azp: optional(text),
	scope: optional(z.union([z.string(), list])),
	scp: optional(z.union([z.string(), list])),
	cnf: optional(z.record(z.string(), z.json())),
};
const audience = z.union([text, z.array(text).min(1)]);

const token = z.object({ exp: z.number() });
const claimsOfToken = z.object({ ...principal, aud: audience, exp: z.number() });
const claimsOfBinding = z.object({ ...principal, aud: audience });

/**
 * Whether claims are those of a token at all: `exp` is a number and `aud` is not empty (RFC 7519 section 4.1).
 * Says what is missing if not.
 */
export function whyNoToken(claims: Claims): string | undefined {
	const parsed = token.safeParse(claims);
	if (!parsed.success) return problemOf(parsed.error);
	const { aud } = claims;
	if (aud === undefined || aud === null || aud === "" || (Array.isArray(aud) && aud.length === 0)) {
		return "/aud: missing or empty";
	}
	return undefined;
}

/**
 * Brings the claims of a token into the form of the facts: `aud` and `scope` as sorted sets, `scp` for `scope`, `azp`
 * for `client_id` where these are absent. Absent and null are one. Other claims are left out, except those that
 * `identityClaims` names.
 */
export const readPresented = readOnce(
	(claims: Claims, identityClaims: readonly string[]): Reading<Presented> => {
		const parsed = claimsOfToken.safeParse(claims);
		if (!parsed.success) return { problem: problemOf(parsed.error) };
		const further = readFurther(claims, identityClaims);
		if ("problem" in further) return further;
		return { value: { ...further.value, ...normalised(parsed.data), exp: parsed.data.exp } };
	},
);

/** Brings a recorded binding into the form of the facts; an anonymous session has `anonymous: true` and nothing else. */
export const readBinding = readOnce((claims: Claims, identityClaims: readonly string[]): Reading<Binding> => {
	if ("anonymous" in claims) {
		return claims.anonymous === true && Object.keys(claims).length === 1
			? { value: { anonymous: true } }
			: { problem: "/anonymous: true and nothing else, or not there" };
	}
	const parsed = claimsOfBinding.safeParse(claims);
	if (!parsed.success) return { problem: problemOf(parsed.error) };
	const further = readFurther(claims, identityClaims);
	if ("problem" in further) return further;
	return { value: { ...further.value, ...normalised(parsed.data) } };
});

/** Each value once, sorted: a set that compares by its text. */
export function sortedSet(values: readonly string[]): string[] {
	return isAscending(values) ? [...values] : [...new Set(values)].sort();
}

function isAscending(values: readonly string[]): boolean {
	for (let i = 1; i < values.length; i++)
		if (!((values[i - 1] as string) < (values[i] as string))) return false;
	return true;
}

function normalised(claims: z.infer<typeof claimsOfBinding>) {
	const { iss, sub, aud, cnf } = claims;
	const clientId = claims.client_id ?? claims.azp;
	const value: Pick<Presented, "iss" | "sub" | "client_id" | "aud" | "scope" | "cnf"> = {
		iss,
		sub,
		aud: typeof aud === "string" ? [aud] : sortedSet(aud),
		scope: scopeOf(claims.scope ?? claims.scp),
	};
	if (clientId != null) value.client_id = clientId;
	if (cnf != null) value.cnf = cnf;
	return value;
}

// RFC 6749 section 3.3: space-delimited.
function scopeOf(scope: string | string[] | null | undefined): string[] {
	if (scope == null) return [];
	return sortedSet(typeof scope === "string" ? scope.split(" ").filter((value) => value !== "") : scope);
}

const json = z.json();

function readFurther(claims: Claims, names: readonly string[]): Reading<Record<string, unknown>> {
	const value: Record<string, unknown> = {};
	for (const name of names) {
		const claim = Object.hasOwn(claims, name) ? claims[name] : undefined;
		if (claim == null) continue;
		const parsed = json.safeParse(claim);
		if (!parsed.success) return { problem: `/${name}: not JSON` };
		value[name] = claim;
	}
	return { value };
}

// Says which claim and what is wrong, never its value.
function problemOf(error: z.ZodError): string {
	const [issue] = error.issues;
	return `/${issue?.path.map(String).join("/") ?? ""}: ${issue?.message ?? "invalid"}`;
}
