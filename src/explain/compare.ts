import type { Binding, Facts, Presented } from "../generated/types.ts";
import type { Claim, Comparison, Relation } from "./explanation.ts";
import type { Oracle } from "./oracle.ts";
import { quoteAll } from "./visible.ts";

/** The comparison, and what the policy says of it. */
export interface Compared {
	readonly comparison: Comparison;
	/** The identity claims that differ; `undefined` if there is nothing to compare, or the policy does not say. */
	readonly identity: readonly string[] | undefined;
	/** Those of aud and scope that break the profile; `undefined` as above. */
	readonly profile: readonly string[] | undefined;
	/** Where the comparison and the policy do not go together. */
	readonly disagreements: readonly string[];
}

/** Compares what a session was opened with to what is presented, claim by claim. */
export function compare(facts: Facts, oracle: Oracle): Compared {
	const { session, presented } = facts;
	const nothing = { identity: undefined, profile: undefined, disagreements: [] };
	if (session === undefined) {
		const summary = `There is no session to compare with: ${
			facts.request.session === "none" ? "no session id was given" : "the session id is not known"
		}.`;
		return { comparison: { summary, claims: claimsOf(presented, "presented", oracle) }, ...nothing };
	}
	const { binding } = session;
	if (presented === undefined) {
		const summary = "No token was presented: there is nothing to compare.";
		return { comparison: { summary, claims: claimsOf(binding, "recorded", oracle) }, ...nothing };
	}

	const identity = identityDrift(facts, binding, presented, oracle);
	const profile = profileDrift(facts, binding, presented, oracle);
	const aud = audienceOf(binding.aud ?? [], presented.aud, oracle);
	const scope = scopeOf(binding.scope ?? [], presented.scope);
	const names = identityClaims(oracle);
	const differing = names.filter((claim) => !isSame(own(presented, claim), own(binding, claim)));
	const claims: Claim[] = [
		...names
			.filter((claim) => own(binding, claim) !== undefined || own(presented, claim) !== undefined)
			.map((claim) => ({
				claim,
				relation: differing.includes(claim) ? ("differs" as const) : ("equal" as const),
				allowed: !(identity ?? differing).includes(claim),
				...pair(own(binding, claim), own(presented, claim)),
				...absence(own(binding, claim), own(presented, claim)),
			})),
		{
			claim: "aud",
			...aud,
			allowed: !(profile ?? []).includes("aud"),
			...pair(binding.aud, presented.aud),
		},
		{
			claim: "scope",
			...scope,
			allowed: !(profile ?? []).includes("scope"),
			...pair(binding.scope, presented.scope),
		},
	];

	const disagreements: string[] = [];
	if (identity !== undefined && !isSameSet(differing, identity)) {
		disagreements.push(`by the claims, ${quoteAll(differing)} differ; the policy says ${quoteAll(identity)}`);
	}
	if (profile !== undefined) {
		const expected = expectedDrift(aud, scope, binding, presented, oracle);
		if (!isSame(expected, profile)) {
			disagreements.push(
				`by the claims, profile ${oracle.data.profile} is broken by ${quoteAll(expected)}; the policy says ${quoteAll(profile)}`,
			);
		}
	}
	const summary =
		binding.anonymous === true
			? "The session was opened without a token, and has no owner whom a token could match."
			: `Identity has to be equal; aud and scope follow the profile ${oracle.data.profile}: ${PROFILES[oracle.data.profile]}.`;
	return { comparison: { summary, claims }, identity, profile, disagreements };
}

export const PROFILES = {
	strict: "the same sets as recorded",
	covering:
		"aud narrower or wider than recorded, through coverage, never sideways; the recorded scope, or more",
	"per-tool": "at least one aud is this server's own; scope is free",
} as const;

function identityClaims({ data }: Oracle): string[] {
	return [...new Set(["iss", "sub", "client_id", "cnf", ...data.identity_claims])].filter(
		(claim) => claim !== "aud" && claim !== "scope" && claim !== "exp",
	);
}

function claimsOf(
	claims: Binding | Presented | undefined,
	side: "recorded" | "presented",
	oracle: Oracle,
): Claim[] {
	if (claims === undefined) return [];
	return [...identityClaims(oracle), "aud", "scope"].flatMap((claim) => {
		const value = own(claims, claim);
		return value === undefined ? [] : [{ claim, allowed: true, [side]: value }];
	});
}

// The names come from data: what every object inherits is no claim.
function own(claims: Binding | Presented, claim: string): unknown {
	return Object.hasOwn(claims, claim) ? claims[claim] : undefined;
}

function pair(recorded: unknown, presented: unknown): Pick<Claim, "recorded" | "presented"> {
	return { ...(recorded !== undefined && { recorded }), ...(presented !== undefined && { presented }) };
}

function absence(recorded: unknown, presented: unknown): Pick<Claim, "note"> {
	if (recorded === undefined) return { note: "was absent: absent equals only absent" };
	if (presented === undefined) return { note: "is absent: absent equals only absent" };
	return {};
}

// The claims at hand with the recorded aud and scope: whatever the policy then says is about identity.
function identityDrift(
	facts: Facts,
	binding: Binding,
	presented: Presented,
	oracle: Oracle,
): readonly string[] | undefined {
	const { aud, scope } = { aud: presented.aud, scope: presented.scope, ...binding };
	const answer = askSession(facts, { ...presented, aud, scope }, oracle);
	if (answer.code === "principal_drift") return answer.drift;
	return passedRow3(answer.code) ? [] : undefined;
}

// The recorded identity with the aud and scope at hand.
function profileDrift(
	facts: Facts,
	binding: Binding,
	presented: Presented,
	oracle: Oracle,
): readonly string[] | undefined {
	if (binding.anonymous === true) return undefined;
	const { aud, scope } = presented;
	const answer = askSession(facts, { ...binding, aud, scope }, oracle);
	if (answer.code === "binding_drift") return answer.drift;
	return answer.code === "covered" || answer.code.startsWith("custom:") ? [] : undefined;
}

function passedRow3(code: string): boolean {
	return code === "covered" || code === "binding_drift" || code.startsWith("custom:");
}

function askSession(facts: Facts, claims: Record<string, unknown>, oracle: Oracle) {
	const { session, request } = facts;
	return oracle.ask("session", {
		now: facts.now,
		request: { method: "GET", transport: request.transport, session: "known" },
		...(session !== undefined && { session }),
		presented: { ...claims, exp: facts.now + 3600 },
	});
}

interface AudienceRelation {
	readonly relation: Relation;
	readonly note?: string;
}

// As sets, by name; then by what the policy says that they stand for, this server's own alone.
function audienceOf(
	recorded: readonly string[],
	presented: readonly string[],
	oracle: Oracle,
): AudienceRelation {
	const ownRecorded = recorded.filter(oracle.isOwn);
	const ownPresented = presented.filter(oracle.isOwn);
	const strange = (() => {
		if (recorded.length > 0 && ownRecorded.length === 0) return "none of those recorded is this server's own";
		if (ownPresented.length === 0) return "none of those presented is this server's own";
		return undefined;
	})();
	const note = (text: string) => ({ note: strange === undefined ? text : `${text}; ${strange}` });
	if (isSameSet(recorded, presented)) {
		return { relation: "equal", ...(strange !== undefined && { note: strange }) };
	}
	if (isSameSet(recorded.map(nameOf(oracle)), presented.map(nameOf(oracle)))) {
		return { relation: "equal", ...note("through aliases") };
	}
	if (strange !== undefined) return { relation: "differs", note: strange };
	const beyond = oracle.uncovered(ownPresented, ownRecorded);
	const lost = oracle.uncovered(ownRecorded, ownPresented);
	if (beyond === undefined || lost === undefined) {
		return { relation: "differs", note: "the policy did not say what stands for what" };
	}
	if (lost.length === 0 && beyond.length === 0) {
		return { relation: "wider", note: "each stands for the other" };
	}
	if (beyond.length === 0) return { relation: "narrower", note: `no longer stands for ${quoteAll(lost)}` };
	if (lost.length === 0) return { relation: "wider", note: `stands for ${quoteAll(beyond)}, too` };
	return {
		relation: "differs",
		note: `sideways: no longer stands for ${quoteAll(lost)}, and stands for ${quoteAll(beyond)} instead`,
	};
}

function scopeOf(recorded: readonly string[], presented: readonly string[]): AudienceRelation {
	const [before, after] = [new Set(recorded), new Set(presented)];
	const lost = recorded.filter((scope) => !after.has(scope));
	const gained = presented.filter((scope) => !before.has(scope));
	if (lost.length === 0 && gained.length === 0) return { relation: "equal" };
	if (lost.length === 0) return { relation: "wider", note: `${quoteAll(gained)} came on top` };
	if (gained.length === 0) return { relation: "narrower", note: `${quoteAll(lost)} is gone` };
	return { relation: "differs", note: `${quoteAll(lost)} is gone, ${quoteAll(gained)} came` };
}

// What the profile as it is documented makes of the relations: to notice a policy that does otherwise.
function expectedDrift(
	aud: AudienceRelation,
	scope: AudienceRelation,
	binding: Binding,
	presented: Presented,
	oracle: Oracle,
): string[] {
	const isOwn = (audiences: readonly string[] = []) => audiences.some(oracle.isOwn);
	const breaks = {
		strict: [aud.relation !== "equal", scope.relation !== "equal"],
		covering: [
			!isOwn(binding.aud) || aud.relation === "differs",
			scope.relation === "narrower" || scope.relation === "differs",
		],
		"per-tool": [!isOwn(presented.aud), false],
	}[oracle.data.profile];
	return ["aud", "scope"].filter((_, index) => breaks[index]);
}

function nameOf({ data }: Oracle): (audience: string) => string {
	return (audience) => data.aliases.find((set) => set.includes(audience))?.[0] ?? audience;
}

function isSameSet(some: readonly string[], others: readonly string[]): boolean {
	const [one, other] = [new Set(some), new Set(others)];
	return one.size === other.size && some.every((value) => other.has(value));
}

/** Whether two JSON values are equal; the order of an object's members is not part of it. */
function isSame(a: unknown, b: unknown): boolean {
	if (a === b) return true;
	if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
	if (Array.isArray(a) !== Array.isArray(b)) return false;
	const names = Object.keys(a);
	if (names.length !== Object.keys(b).length) return false;
	return names.every(
		(name) =>
			Object.hasOwn(b, name) &&
			isSame((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name]),
	);
}
