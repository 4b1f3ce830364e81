import type { Decisions } from "../decision.ts";
import type { Facts, Missing } from "../generated/types.ts";
import type { Moment } from "../policy.ts";
import type { Compared } from "./compare.ts";
import type { Claim, Events, Row, Subject } from "./explanation.ts";
import type { Oracle } from "./oracle.ts";
import { nameOfSubject } from "./subject.ts";
import { duration, instant } from "./time.ts";
import { counted, join, quote, quoteAll } from "./visible.ts";

/** What the rows are read from. */
export interface Ground {
	readonly moment: Moment;
	readonly facts: Facts;
	readonly oracle: Oracle;
	readonly compared: Compared;
	readonly events: Events | undefined;
	readonly subject: Subject | undefined;
}

/** What the facts make of a row's condition; `fires` is absent where only the policy knows. */
interface Reading {
	readonly fires?: boolean;
	readonly facts: string;
}

interface TableRow {
	readonly row: string;
	readonly codes: readonly string[];
	readonly condition: string;
	readonly moments: readonly Moment[];
	read(ground: Ground): Reading;
}

const ALL: readonly Moment[] = ["session", "call", "resume", "delivery"];
const IN_SESSION: readonly Moment[] = ["session", "call", "resume"];

/** The decision table: the first row whose condition holds decides. */
const TABLE: readonly TableRow[] = [
	{
		row: "1",
		codes: ["token_missing", "token_expired"],
		condition: "no token, or one that has expired",
		moments: ALL,
		read: readToken,
	},
	{
		row: "2",
		codes: ["session_unknown", "session_required"],
		condition: "a session id that is not known, or none where one is needed",
		moments: IN_SESSION,
		read: readSession,
	},
	{
		row: "3",
		codes: ["principal_drift"],
		condition: "another principal than the session's",
		moments: IN_SESSION,
		read: (ground) => readDrift(ground, ground.compared.identity, isIdentity),
	},
	{
		row: "4",
		codes: ["binding_drift"],
		condition: "aud or scope have changed otherwise than the profile allows",
		moments: IN_SESSION,
		read: (ground) => readDrift(ground, ground.compared.profile, (claim) => !isIdentity(claim)),
	},
	{
		row: "5",
		codes: ["custom:…"],
		condition: "a rule of the operator's own refuses",
		moments: IN_SESSION,
		read: () => ({ facts: "no rule of policies/mcp/custom refused" }),
	},
	{
		row: "5a",
		codes: ["tool_unmapped"],
		condition: 'data maps neither the tool or method nor "*"',
		moments: ["call"],
		read: readMapping,
	},
	{
		row: "5b",
		codes: ["request_id_in_use"],
		condition: "a call with that JSON-RPC id is still open",
		moments: ["session", "call"],
		read: readRequestId,
	},
	{
		row: "5c",
		codes: ["quota_exceeded"],
		condition: "the principal has as much as it may have",
		moments: ["session", "call"],
		read: readQuota,
	},
	{
		row: "6",
		codes: ["cursor_unknown"],
		condition: "the cursor is another session's or stream's, or nobody's",
		moments: ["resume"],
		read: (ground) => readPosition(ground, ["foreign", "unknown"]),
	},
	{
		row: "7",
		codes: ["cursor_evicted"],
		condition: "an event after the cursor is gone",
		moments: ["resume"],
		read: (ground) => readPosition(ground, ["evicted"]),
	},
	{
		row: "8",
		codes: ["cursor_ahead"],
		condition: "the cursor was never issued, or never sent",
		moments: ["resume"],
		read: (ground) => readPosition(ground, ["ahead"]),
	},
	{
		row: "9",
		codes: ["audience_not_covered", "scope_not_covered"],
		condition: "the token lacks something that is needed",
		moments: ["call", "resume", "delivery"],
		read: readNeeds,
	},
	{
		row: "10",
		codes: ["covered"],
		condition: "all that was asked is there and good",
		moments: ALL,
		read: readCovered,
	},
	{
		row: "–",
		codes: ["undecided", "invalid_facts", "policy_fault"],
		condition: "no row matched, or none could be asked",
		moments: ALL,
		read: () => ({ facts: "no row before it matched" }),
	},
];

/**
 * The rows as this decision went through them. Which one fired, the decision says; why the earlier ones did not, the
 * facts; and where the two do not go together, it is said.
 *
 * @param ground absent if the policy was not asked, or could not answer
 */
export function readRows(
	decision: Decisions[Moment],
	moment: Moment,
	ground: Ground | undefined,
): { readonly rows: readonly Row[]; readonly disagreements: readonly string[] } {
	const { code } = decision;
	const fired = TABLE.findIndex(({ codes }) => codes.includes(code) || isOwnCode(codes, code));
	const disagreements: string[] = [];
	if (fired === -1) disagreements.push(`${quote(code)} is no code of the decision table`);
	const isWithoutRows = code === "invalid_facts" || code === "policy_fault";

	const rows = TABLE.map(({ row, codes, condition, moments, read }, index): Row => {
		const shown = { row, codes, condition };
		if (index === fired) {
			const known = decidedBefore(decision);
			if (ground === undefined || known !== undefined) {
				return { ...shown, state: "fired", facts: known ?? "there are no facts to show" };
			}
			const { fires, facts } = read(ground);
			if (fires === false) disagreements.push(`row ${row} (${code}) decided, but by the facts: ${facts}`);
			return { ...shown, state: "fired", facts: index === 4 ? `the rule ${quote(code)} refused` : facts };
		}
		if (!moments.includes(moment)) return { ...shown, state: "not_asked", facts: `not asked at ${moment}` };
		if (isWithoutRows || index > fired) return { ...shown, state: "not_reached", facts: "not reached" };
		if (ground === undefined) return { ...shown, state: "not_fired", facts: "no facts to show" };
		const { fires, facts } = read(ground);
		if (fires === true) {
			disagreements.push(
				`row ${row} (${codes.join(", ")}) should have decided, as ${facts}; the policy went past it`,
			);
		}
		return { ...shown, state: "not_fired", facts };
	});
	return { rows, disagreements };
}

function isOwnCode(codes: readonly string[], code: string): boolean {
	return codes[0] === "custom:…" && code.startsWith("custom:");
}

// What the adapter answers without the policy says what was wrong by itself.
function decidedBefore(decision: Decisions[Moment]): string | undefined {
	return "detail" in decision && decision.detail !== undefined
		? `not asked of the policy: ${quote(decision.detail, 400)}`
		: undefined;
}

function readToken({ facts, moment, oracle }: Ground): Reading {
	const { presented, now, request, session } = facts;
	if (presented === undefined) {
		const isOfAnonymous =
			request.session === "known"
				? session?.binding.anonymous === true
				: request.session === "none" && moment === "session" && opensSession(facts);
		if (!oracle.data.anonymous)
			return { fires: true, facts: "no token is presented, and data allows no anonymous sessions" };
		if (!isOfAnonymous)
			return { fires: true, facts: "no token is presented, and this is no anonymous session" };
		return {
			fires: false,
			facts: "no token is presented, and none is needed: data allows anonymous sessions",
		};
	}
	const { clock_skew } = oracle.data;
	const left = presented.exp - now;
	const exp = `exp ${instant(presented.exp)}`;
	if (!(now < presented.exp + clock_skew)) {
		return {
			fires: true,
			facts: `${exp} was ${duration(left)} before now, and the clock skew is ${clock_skew} s`,
		};
	}
	if (left > 0)
		return { fires: false, facts: `a token is presented, and its ${exp} is ${duration(left)} from now` };
	return {
		fires: false,
		facts: `a token is presented; its ${exp} has passed by ${duration(left)}, which is within the clock skew of ${clock_skew} s`,
	};
}

function opensSession({ request, rpc }: Facts): boolean {
	return (
		(request.method === "POST" && rpc === "initialize") ||
		(request.method === "GET" && request.transport === "sse")
	);
}

function readSession({ facts, moment }: Ground): Reading {
	const { request } = facts;
	if (request.session === "known")
		return { fires: false, facts: "a session id is given, and its session is known" };
	if (request.session === "unknown")
		return { fires: true, facts: "the session id that was given is not known" };
	const needsNone =
		(request.method === "POST" && moment !== "resume") ||
		(moment === "session" && request.method === "GET" && request.transport === "sse");
	return needsNone
		? { fires: false, facts: "no session id is given, and none is needed" }
		: { fires: true, facts: `no session id is given, and a ${request.method} needs one` };
}

function isIdentity({ claim }: Claim): boolean {
	return claim !== "aud" && claim !== "scope";
}

function readDrift(
	{ facts, compared }: Ground,
	drift: readonly string[] | undefined,
	isOf: (claim: Claim) => boolean,
): Reading {
	if (facts.session === undefined) return { fires: false, facts: "there is no session to compare with" };
	if (facts.presented === undefined) return { fires: false, facts: "an anonymous session, and no token" };
	const claims = compared.comparison.claims.filter(isOf);
	if (drift === undefined) return { facts: "the policy, asked for this alone, did not say" };
	const broken = claims.filter(({ allowed }) => !allowed);
	const shown = broken.length > 0 ? broken : claims;
	const equal = shown.filter(({ relation, note }) => relation === "equal" && note === undefined);
	const others = shown.filter((claim) => !equal.includes(claim));
	const how = [
		...(equal.length > 0 ? [`${quoteAll(equal.map(({ claim }) => claim))} equal`] : []),
		...others.map(
			({ claim, relation, note }) => `${quote(claim)} ${wordOf(relation)}${note ? ` (${note})` : ""}`,
		),
	];
	return { fires: drift.length > 0, facts: how.join(", ") || "no claim of the kind on either side" };
}

const wordOf = (relation: Claim["relation"]) =>
	relation === "equal" || relation === "differs" ? relation : `is ${relation ?? "there"}`;

function readMapping({ facts, oracle }: Ground): Reading {
	const { tool, rpc, reference } = facts;
	if (reference !== undefined) return { fires: false, facts: "it refers to a call that has its label" };
	const { tools, methods } = oracle.data;
	const [map, name, kind] = tool === undefined ? [methods, rpc ?? "", "method"] : [tools, tool, "tool"];
	const isWild = tool !== undefined || !name.startsWith("tasks/");
	if (Object.hasOwn(map, name)) return { fires: false, facts: `data maps the ${kind} ${quote(name)}` };
	if (isWild && Object.hasOwn(map, "*")) {
		return { fires: false, facts: `data maps the ${kind} ${quote(name)} by "*"` };
	}
	return {
		fires: true,
		facts: `data does not map the ${kind} ${quote(name)}${isWild ? ', and has no "*"' : ', which "*" does not reach'}`,
	};
}

function readRequestId({ facts, moment }: Ground): Reading {
	const { request } = facts;
	if (request.id !== "in_use") return { fires: false, facts: "the JSON-RPC id is free" };
	return moment === "call" || request.method === "POST"
		? { fires: true, facts: "a call with this JSON-RPC id is still open" }
		: { fires: false, facts: `a ${request.method} has no JSON-RPC id` };
}

function readQuota({ facts, moment }: Ground): Reading {
	const { request } = facts;
	if (request.quota !== "exceeded") return { fires: false, facts: "there is quota left" };
	const startsWork =
		moment === "call" || request.method === "POST" || (request.session === "none" && opensSession(facts));
	return startsWork
		? { fires: true, facts: "the quota is exceeded" }
		: { fires: false, facts: `the quota is exceeded, but a ${request.method} needs none` };
}

function readPosition({ facts }: Ground, positions: readonly string[]): Reading {
	const { position, last_event_id } = facts.cursor ?? { position: "unknown", last_event_id: "" };
	return {
		fires: positions.includes(position),
		facts: `cursor ${quote(last_event_id, 80)} is ${position}`,
	};
}

function readNeeds(ground: Ground): Reading {
	const needs = needsOf(ground);
	if (ground.moment === "delivery") {
		const stranger = whyStranger(ground);
		if (stranger !== undefined) return { fires: false, facts: `not looked at: ${stranger}` };
	}
	const unmet = needs.find(({ missing }) => missing === undefined || lacksSomething(missing));
	if (unmet === undefined) {
		return {
			fires: false,
			facts:
				needs.length === 0
					? "nothing is needed"
					: `the token covers ${counted(needs.length, "distinct need")}: ${join(needs.map(nameOfSubject))}`,
		};
	}
	if (unmet.missing === undefined) return { facts: "the policy, asked for this alone, did not say" };
	return {
		fires: true,
		facts: `${nameOfSubject(unmet)} needs ${lackOf(unmet.missing)}, which the token does not have`,
	};
}

/** Everything that row 9 looks at, in its order. */
export function needsOf({ events, subject, oracle }: Ground): readonly Subject[] {
	if (subject !== undefined) return [subject];
	if (events === undefined) return [];
	return oracle.data.replay === "atomic" ? [...events.runs, ...events.open] : events.runs;
}

export function lacksSomething({ aud, scope }: Missing): boolean {
	return aud.length > 0 || scope.length > 0;
}

/** What a token has, in words. */
export function rightsIn({
	aud,
	scope,
}: {
	readonly aud: readonly string[];
	readonly scope: readonly string[];
}): string {
	return `aud ${quoteAll(aud)}, ${scope.length === 0 ? "no scope" : `scope ${quoteAll(scope)}`}`;
}

/** What is missing, in words. */
export function lackOf({ aud, scope }: Missing): string {
	const parts = [
		...(aud.length > 0 ? [`aud ${quoteAll(aud)}`] : []),
		...(scope.length > 0 ? [`scope ${quoteAll(scope)}`] : []),
	];
	return parts.join(" and ") || "nothing";
}

// At delivery rows 2 to 4 are not asked, but nobody other than the stream's principal is told what waits there.
function whyStranger({ facts, compared }: Ground): string | undefined {
	const { request, presented } = facts;
	if (request.session === "unknown") return "the session id is not known";
	if (presented === undefined) return undefined;
	if (request.session === "none") {
		return request.method === "POST" ? undefined : "no session id is given, and none but a POST goes without";
	}
	return compared.identity === undefined || compared.identity.length > 0
		? "the token is another principal's than the session's"
		: undefined;
}

function readCovered(ground: Ground): Reading {
	if (ground.moment === "delivery") {
		const stranger = whyStranger(ground);
		if (stranger !== undefined) return { fires: false, facts: stranger };
	}
	const { events } = ground;
	if (events === undefined)
		return { fires: true, facts: "no row before it matched, and what it asks for is there" };
	return {
		fires: true,
		facts:
			events.count === 0 ? "nothing is pending" : `all ${counted(events.count, "pending event")} may go out`,
	};
}
