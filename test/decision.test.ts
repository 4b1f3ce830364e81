import { describe, expect, it, test } from "vitest";
import { buildWasm } from "../scripts/build-wasm.ts";
import { findOpa } from "../scripts/opa.ts";
import { type CompletePolicyData, readData } from "../src/data.ts";
import { whyNotSound } from "../src/decision.ts";
import { readFacts } from "../src/facts.ts";
import type { Facts } from "../src/generated/types.ts";
import { createResumeGuard, type Moment, type PolicyFault, type PolicySource } from "../src/index.ts";
import { handmadePolicy } from "./handmade.ts";
import { ask } from "./tables/run.ts";
import { inTemporaryFolder } from "./temporary.ts";

const MCP = "https://mcp.example.com";
const SEARCH = `${MCP}/tools/search`;
const FETCH = `${MCP}/tools/fetch`;
const NOW = 1_796_000_000;

const alice = { iss: "https://as.example.com", sub: "alice", client_id: "desktop", aud: [MCP], scope: [] };
const token = { ...alice, exp: NOW + 3600 };
const post = { method: "POST", transport: "streamable-http", session: "known" };
const session = { binding: alice, transport: "streamable-http", opened_at: NOW - 60 };
const anonymousSession = { ...session, binding: { anonymous: true } };

const ping = { now: NOW, request: post, session, presented: token, rpc: "ping" };
const call = { now: NOW, request: post, session, presented: token, tool: "fetch" };
const resume = {
	now: NOW,
	request: { ...post, method: "GET" },
	session,
	presented: token,
	cursor: { last_event_id: "41", position: "retained" },
	pending: [
		...[42, 43, 44, 45, 46, 47].map((id) => ({ id: `${id}`, tool: "search", aud: [SEARCH], scope: [] })),
		{ id: "48", tool: "fetch", aud: [FETCH], scope: [] },
	],
	open: [{ tool: "fetch", request_id: 9, aud: [FETCH], scope: [] }],
};
const delivery = {
	now: NOW,
	request: post,
	session,
	presented: token,
	event: { tool: "fetch", aud: [FETCH], scope: [] },
};
const questions: Record<Moment, object> = { session: ping, call, resume, delivery };

const proceed = { outcome: "proceed", code: "covered", drift: [], session: "keep", status: 200 };
const label = { aud: [], scope: [] };
const all = { ...proceed, deliver: 7, cursor: "48" };
const held = { event_id: "48", tool: "fetch", missing: { aud: [FETCH], scope: [] } };
const reauthorize = {
	outcome: "reauthorize",
	code: "audience_not_covered",
	held,
	required: { aud: [FETCH, SEARCH], scope: [] },
	drift: [],
	session: "keep",
	status: 403,
};
const none = { ...reauthorize, deliver: 0, cursor: "41" };
const prefix = { ...reauthorize, deliver: 6, cursor: "47" };
const refuse = { outcome: "refuse", code: "undecided", drift: [], session: "keep", status: 403 };
const stay = { deliver: 0, cursor: "41" };
const reinitialize = { ...refuse, outcome: "reinitialize", code: "binding_drift", session: "end" };
const reissue = { ...refuse, outcome: "reissue", code: "cursor_evicted", status: 410 };

interface Row {
	readonly moment: Moment;
	/** What is other in the question than in that of the moment. */
	readonly asked?: object;
	readonly data?: object;
	readonly answer: unknown;
}

const shape = "the answer is not one of";
const floor = "the answer lets somebody in";
const inPrefix = { replay: "prefix" };
const stranger = { presented: { ...token, sub: "mallory" } };
const noSession = { request: { ...post, session: "none" }, session: undefined };
const openSse = {
	request: { ...post, method: "GET", transport: "sse", session: "none" },
	session: undefined,
};
const unknownSession = { request: { ...post, session: "unknown" }, session: undefined };
const unknownGet = { request: { ...post, method: "GET", session: "unknown" }, session: undefined };
const noToken = { presented: undefined };

const sound: Record<string, Row> = {
	"session: proceed": { moment: "session", answer: { ...proceed, label } },
	"session: proceed without a session, on a POST": {
		moment: "session",
		asked: noSession,
		answer: { ...proceed, label },
	},
	"session: refuse": { moment: "session", answer: refuse },
	"session: a refusal of a stranger": { moment: "session", asked: stranger, answer: reinitialize },
	"session: a refusal of an unknown session": { moment: "session", asked: unknownSession, answer: refuse },
	"session: an operator's own code": { moment: "session", answer: { ...refuse, code: "custom:closed" } },
	"call: proceed": { moment: "call", answer: { ...proceed, label } },
	"call: reauthorize": { moment: "call", answer: reauthorize },
	"call: reissue": { moment: "call", answer: { ...reissue, code: "audience_not_covered", held } },
	"resume: everything": { moment: "resume", answer: all },
	"resume: nothing pending": { moment: "resume", asked: { pending: [] }, answer: { ...all, ...stay } },
	"resume: nothing, atomic": { moment: "resume", answer: none },
	"resume: nothing, prefix": { moment: "resume", data: inPrefix, answer: none },
	"resume: a prefix": { moment: "resume", data: inPrefix, answer: prefix },
	"resume: a prefix up to another first of its need": {
		moment: "resume",
		data: inPrefix,
		answer: { ...none, held: { ...held, event_id: "42" } },
	},
	"resume: nothing for a stranger": {
		moment: "resume",
		asked: stranger,
		answer: { ...reinitialize, ...stay },
	},
	"resume: reissue": { moment: "resume", answer: { ...reissue, ...stay } },
	"resume: an open call is held": {
		moment: "resume",
		answer: { ...none, held: { tool: "fetch", request_id: 9, missing: held.missing } },
	},
	"delivery: proceed": { moment: "delivery", answer: proceed },
	"delivery: reauthorize": { moment: "delivery", answer: reauthorize },
	"exp within the skew": { moment: "session", asked: { now: token.exp + 29 }, answer: { ...proceed, label } },
	"an anonymous session, where data allows it": {
		moment: "session",
		asked: { ...noToken, session: anonymousSession },
		data: { anonymous: true },
		answer: { ...proceed, label },
	},
	"an anonymous resume, where data allows it": {
		moment: "resume",
		asked: { ...noToken, session: anonymousSession },
		data: { anonymous: true },
		answer: all,
	},
	"the GET that opens HTTP+SSE": { moment: "session", asked: openSse, answer: { ...proceed, label } },
	"an anonymous GET that opens HTTP+SSE, where data allows it": {
		moment: "session",
		asked: { ...noToken, ...openSse },
		data: { anonymous: true },
		answer: { ...proceed, label },
	},
	"an anonymous initialize, where data allows it": {
		moment: "session",
		asked: { ...noToken, ...noSession, rpc: "initialize" },
		data: { anonymous: true },
		answer: { ...proceed, label },
	},
};

// Name → row, and the beginning of what is said of it.
const unsound: Record<string, Row & { readonly why: string }> = {
	// The shape of the moment and the outcome.
	"no answer": { moment: "session", answer: undefined, why: shape },
	null: { moment: "session", answer: null, why: shape },
	true: { moment: "session", answer: true, why: shape },
	text: { moment: "session", answer: "proceed", why: shape },
	"a list": { moment: "session", answer: [{ ...proceed, label }], why: shape },
	"an empty object": { moment: "session", answer: {}, why: shape },
	"an outcome that there is not": {
		moment: "session",
		answer: { ...proceed, outcome: "allow", label },
		why: shape,
	},
	"no label": { moment: "session", answer: proceed, why: shape },
	"no label of a call": { moment: "call", answer: proceed, why: shape },
	"a member more": { moment: "session", answer: { ...proceed, label, note: "x" }, why: shape },
	"a member less": { moment: "session", answer: { ...proceed, label, drift: undefined }, why: shape },
	"another moment's answer: deliver at a call": {
		moment: "call",
		answer: { ...proceed, label, ...stay },
		why: shape,
	},
	"another moment's answer: no deliver at a resume": { moment: "resume", answer: proceed, why: shape },
	"another moment's answer: a label at a delivery": {
		moment: "delivery",
		answer: { ...proceed, label },
		why: shape,
	},
	"reauthorize at a session question": { moment: "session", answer: reauthorize, why: shape },
	"a code of another outcome": { moment: "resume", answer: { ...all, code: "cursor_ahead" }, why: shape },
	"a code that there is not": { moment: "session", answer: { ...refuse, code: "closed" }, why: shape },
	"a custom code that is not well formed": {
		moment: "session",
		answer: { ...refuse, code: "custom:Too Old" },
		why: shape,
	},
	"a custom code on proceed": {
		moment: "session",
		answer: { ...proceed, label, code: "custom:fine" },
		why: shape,
	},
	"a custom code at a delivery": {
		moment: "delivery",
		answer: { ...refuse, code: "custom:closed" },
		why: shape,
	},
	"a custom code on reauthorize": {
		moment: "call",
		answer: { ...reauthorize, code: "custom:closed" },
		why: shape,
	},
	"proceed that ends the session": {
		moment: "session",
		answer: { ...proceed, label, session: "end" },
		why: shape,
	},
	"proceed with a drift": { moment: "session", answer: { ...proceed, label, drift: ["aud"] }, why: shape },
	"proceed with another status": {
		moment: "session",
		answer: { ...proceed, label, status: 204 },
		why: shape,
	},
	"a refusal with 200": { moment: "session", answer: { ...refuse, status: 200 }, why: shape },
	"a refusal with 302": { moment: "session", answer: { ...refuse, status: 302 }, why: shape },
	"a refusal with 600": { moment: "session", answer: { ...refuse, status: 600 }, why: shape },
	"a status that is text": { moment: "session", answer: { ...refuse, status: "403" }, why: shape },
	"a status that is no integer": { moment: "session", answer: { ...refuse, status: 403.5 }, why: shape },
	"a fate that there is not": { moment: "session", answer: { ...refuse, session: "pause" }, why: shape },
	"a drift that is text": { moment: "session", answer: { ...reinitialize, drift: "aud" }, why: shape },
	"reauthorize without held": { moment: "call", answer: { ...reauthorize, held: undefined }, why: shape },
	"reauthorize without required": {
		moment: "call",
		answer: { ...reauthorize, required: undefined },
		why: shape,
	},
	"reauthorize that requires no audience": {
		moment: "call",
		answer: { ...reauthorize, required: { aud: [], scope: ["a"] } },
		why: shape,
	},
	"reauthorize that ends the session": {
		moment: "call",
		answer: { ...reauthorize, session: "end" },
		why: shape,
	},
	"deliver below 0": { moment: "resume", answer: { ...none, deliver: -1 }, why: shape },
	"deliver that is no integer": { moment: "resume", answer: { ...all, deliver: 6.5 }, why: shape },
	"deliver that is text": { moment: "resume", answer: { ...all, deliver: "7" }, why: shape },
	"a cursor that is a number": { moment: "resume", answer: { ...all, cursor: 48 }, why: shape },
	"no cursor": { moment: "resume", answer: { ...all, cursor: undefined }, why: shape },
	"reissue that delivers": { moment: "resume", answer: { ...reissue, deliver: 7, cursor: "48" }, why: shape },
	"refuse that delivers": { moment: "resume", answer: { ...refuse, deliver: 7, cursor: "48" }, why: shape },
	"reinitialize that delivers": {
		moment: "resume",
		answer: { ...reinitialize, deliver: 7, cursor: "48" },
		why: shape,
	},
	"reauthenticate that delivers": {
		moment: "resume",
		answer: { ...refuse, outcome: "reauthenticate", code: "token_expired", deliver: 1, cursor: "42" },
		why: shape,
	},

	// Where the cursor stands.
	"proceed that delivers less": {
		moment: "resume",
		answer: { ...all, deliver: 6, cursor: "47" },
		why: "proceed delivers all",
	},
	"proceed that delivers nothing": {
		moment: "resume",
		answer: { ...all, ...stay },
		why: "proceed delivers all",
	},
	"proceed that delivers more than there is": {
		moment: "resume",
		answer: { ...all, deliver: 8 },
		why: "proceed delivers all",
	},
	"proceed that leaves the cursor": {
		moment: "resume",
		answer: { ...all, cursor: "41" },
		why: "proceed delivers all",
	},
	"proceed that moves the cursor past the end": {
		moment: "resume",
		answer: { ...all, cursor: "49" },
		why: "proceed delivers all",
	},
	"proceed that moves the cursor, with nothing pending": {
		moment: "resume",
		asked: { pending: [] },
		answer: { ...all, deliver: 0, cursor: "48" },
		why: "proceed delivers all",
	},
	"a cursor moved without deliver": {
		moment: "resume",
		data: inPrefix,
		answer: { ...none, cursor: "47" },
		why: "a prefix ends",
	},
	"a cursor moved without deliver, on refuse": {
		moment: "resume",
		answer: { ...refuse, deliver: 0, cursor: "48" },
		why: "refuse delivers nothing",
	},
	"a cursor moved without deliver, on reissue": {
		moment: "resume",
		answer: { ...reissue, deliver: 0, cursor: "48" },
		why: "reissue delivers nothing",
	},
	"a cursor moved back": {
		moment: "resume",
		answer: { ...refuse, deliver: 0, cursor: "40" },
		why: "refuse delivers nothing",
	},
	"a prefix under atomic": { moment: "resume", answer: prefix, why: "only replay: prefix" },
	"a prefix without moving the cursor": {
		moment: "resume",
		data: inPrefix,
		answer: { ...prefix, cursor: "41" },
		why: "a prefix ends",
	},
	"a prefix with the held event": {
		moment: "resume",
		data: inPrefix,
		answer: { ...prefix, deliver: 7, cursor: "48" },
		why: "a prefix ends",
	},
	"a prefix shorter than it says": {
		moment: "resume",
		data: inPrefix,
		answer: { ...prefix, deliver: 5, cursor: "46" },
		why: "a prefix ends",
	},
	"a prefix up to an event that is not pending": {
		moment: "resume",
		data: inPrefix,
		answer: { ...prefix, held: { ...held, event_id: "99" } },
		why: "a prefix ends",
	},
	"a prefix up to an open call": {
		moment: "resume",
		data: inPrefix,
		answer: { ...prefix, held: { tool: "fetch", request_id: 9, missing: held.missing } },
		why: "a prefix ends",
	},
	"a prefix past the first of two events of the held one's id": {
		moment: "resume",
		asked: { pending: [resume.pending[0], { id: "42", tool: "fetch", aud: [FETCH], scope: [] }] },
		data: inPrefix,
		answer: { ...prefix, held: { ...held, event_id: "42" }, deliver: 1, cursor: "42" },
		why: "a prefix ends",
	},
	"everything, and a call for another token": {
		moment: "resume",
		data: inPrefix,
		answer: { ...reauthorize, deliver: 7, cursor: "48" },
		why: "a prefix ends",
	},

	// The floor.
	"a stranger let in": { moment: "session", asked: stranger, answer: { ...proceed, label }, why: floor },
	"a stranger let in at a call": {
		moment: "call",
		asked: stranger,
		answer: { ...proceed, label },
		why: floor,
	},
	"a stranger let in at a resume": { moment: "resume", asked: stranger, answer: all, why: floor },
	"a stranger let in at a delivery": { moment: "delivery", asked: stranger, answer: proceed, why: floor },
	"a stranger fed by deliver": {
		moment: "resume",
		asked: stranger,
		data: inPrefix,
		answer: prefix,
		why: floor,
	},
	"a stranger let in, with nothing pending": {
		moment: "resume",
		asked: { ...stranger, pending: [] },
		answer: { ...all, ...stay },
		why: floor,
	},
	"another issuer's subject of the same name": {
		moment: "call",
		asked: { presented: { ...token, iss: "https://other.example.com" } },
		answer: { ...proceed, label },
		why: floor,
	},
	"an expired token": {
		moment: "session",
		asked: { now: token.exp + 30 },
		answer: { ...proceed, label },
		why: floor,
	},
	"an expired token at a delivery": {
		moment: "delivery",
		asked: { now: token.exp + 30 },
		answer: proceed,
		why: floor,
	},
	"an expired token fed by deliver": {
		moment: "resume",
		asked: { now: token.exp + 30 },
		data: inPrefix,
		answer: prefix,
		why: floor,
	},
	"an expired token without a session": {
		moment: "call",
		asked: { ...noSession, now: token.exp + 30 },
		answer: { ...proceed, label },
		why: floor,
	},
	"exp now, without skew": {
		moment: "session",
		asked: { now: token.exp },
		data: { clock_skew: 0 },
		answer: { ...proceed, label },
		why: floor,
	},
	"one event, to a stranger": {
		moment: "resume",
		asked: { ...stranger, pending: resume.pending.slice(5) },
		data: inPrefix,
		answer: { ...prefix, deliver: 1, cursor: "47" },
		why: floor,
	},
	"an unknown session": {
		moment: "session",
		asked: unknownSession,
		answer: { ...proceed, label },
		why: floor,
	},
	"an unknown session at a call": {
		moment: "call",
		asked: unknownSession,
		answer: { ...proceed, label },
		why: floor,
	},
	"an unknown session at a resume": { moment: "resume", asked: unknownGet, answer: all, why: floor },
	"an unknown session fed by deliver": {
		moment: "resume",
		asked: unknownGet,
		data: inPrefix,
		answer: prefix,
		why: floor,
	},
	"an unknown session at a delivery": {
		moment: "delivery",
		asked: unknownSession,
		answer: proceed,
		why: floor,
	},
	"a resume without a session": {
		moment: "resume",
		asked: { request: { ...post, method: "GET", session: "none" }, session: undefined },
		answer: all,
		why: floor,
	},
	"a GET without a session": {
		moment: "session",
		asked: { request: { ...post, method: "GET", session: "none" }, session: undefined },
		answer: { ...proceed, label },
		why: floor,
	},
	"a resume on HTTP+SSE without a session": { moment: "resume", asked: openSse, answer: all, why: floor },
	"an anonymous GET that opens HTTP+SSE, where data does not allow it": {
		moment: "session",
		asked: { ...noToken, ...openSse },
		answer: { ...proceed, label },
		why: floor,
	},
	"a DELETE without a session": {
		moment: "session",
		asked: { request: { ...post, method: "DELETE", session: "none" }, session: undefined },
		answer: { ...proceed, label },
		why: floor,
	},
	"no token": { moment: "session", asked: noToken, answer: { ...proceed, label }, why: floor },
	"no token at a resume": { moment: "resume", asked: noToken, answer: all, why: floor },
	"no token fed by deliver": { moment: "resume", asked: noToken, data: inPrefix, answer: prefix, why: floor },
	"no token, where anonymous sessions are allowed": {
		moment: "session",
		asked: noToken,
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"an anonymous session, where data does not allow it": {
		moment: "session",
		asked: { ...noToken, session: anonymousSession },
		answer: { ...proceed, label },
		why: floor,
	},
	"a token on an anonymous session": {
		moment: "session",
		asked: { session: anonymousSession },
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"a token on an anonymous session, fed by deliver": {
		moment: "resume",
		asked: { session: anonymousSession },
		data: { anonymous: true, replay: "prefix" },
		answer: prefix,
		why: floor,
	},
	"an anonymous call without a session": {
		moment: "call",
		asked: { ...noToken, ...noSession },
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"an anonymous ping without a session": {
		moment: "session",
		asked: { ...noToken, ...noSession },
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"an anonymous call of initialize without a session": {
		moment: "call",
		asked: { ...noToken, ...noSession, tool: undefined, rpc: "initialize" },
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"an anonymous initialize by GET without a session": {
		moment: "session",
		asked: {
			...noToken,
			...noSession,
			request: { ...post, method: "GET", session: "none" },
			rpc: "initialize",
		},
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"an anonymous initialize of an unknown session": {
		moment: "session",
		asked: { ...noToken, ...unknownSession, rpc: "initialize" },
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"an anonymous GET of HTTP+SSE, of an unknown session": {
		moment: "session",
		asked: { ...noToken, ...openSse, request: { ...openSse.request, session: "unknown" } },
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"a DELETE of HTTP+SSE without a session": {
		moment: "session",
		asked: { ...openSse, request: { ...openSse.request, method: "DELETE" } },
		answer: { ...proceed, label },
		why: floor,
	},
	"an anonymous ping of HTTP+SSE without a session": {
		moment: "session",
		asked: { ...noToken, ...openSse, request: { ...openSse.request, method: "POST" } },
		data: { anonymous: true },
		answer: { ...proceed, label },
		why: floor,
	},
	"an anonymous delivery without a session": {
		moment: "delivery",
		asked: { ...noToken, ...noSession },
		data: { anonymous: true },
		answer: proceed,
		why: floor,
	},
};

async function factsOf({
	moment,
	asked,
	data,
}: Row): Promise<{ facts: Facts; policyData: CompletePolicyData }> {
	const policyData = await dataOf(data);
	const reading = readFacts(moment, { ...questions[moment], ...asked }, policyData);
	if ("problem" in reading) throw new Error(reading.problem.detail);
	return { facts: reading.facts, policyData };
}

function dataOf(data: object | undefined): Promise<CompletePolicyData> {
	return readData({ resources: [MCP], coverage: { [MCP]: [`${MCP}/tools/*`] }, ...data });
}

describe("a sound answer is acted on", () => {
	it.each(Object.entries(sound))("%s", async (_, row) => {
		const { facts, policyData } = await factsOf(row);
		expect(whyNotSound(row.moment, facts, row.answer, policyData)).toBeUndefined();
	});
});

describe("an answer that is not sound is not acted on", () => {
	it.each(Object.entries(unsound))("%s", async (_, row) => {
		const { facts, policyData } = await factsOf(row);
		expect(whyNotSound(row.moment, facts, row.answer, policyData)).toMatch(new RegExp(`^${row.why}`));
	});
});

test("what is wrong with the shape is named by its place", async () => {
	const { facts, policyData } = await factsOf({ moment: "session", answer: undefined });
	expect(whyNotSound("session", facts, { ...proceed, label, status: 204 }, policyData)).toBe(
		"the answer is not one of session: /status: must be equal to constant",
	);
});

// Facts that are never read so: the floor stands by itself.
describe("facts that say too little let nobody in", () => {
	const [proceeds, stays] = [
		{ ...proceed, label },
		{ ...refuse, ...stay },
	];

	it.each<[string, Row, (facts: Facts) => Facts, string]>([
		[
			"no cursor",
			{ moment: "resume", answer: stays },
			({ cursor: _, ...rest }) => rest,
			"there is no cursor to move",
		],
		[
			"nothing said of what is pending",
			{ moment: "resume", answer: stays },
			({ pending: _, ...rest }) => rest,
			"there is no cursor to move",
		],
		[
			"a known session without its record",
			{ moment: "session", answer: proceeds },
			({ session: _, ...rest }) => rest,
			floor,
		],
		[
			"a resume by POST without a session",
			{ moment: "resume", answer: all },
			({ session: _, request, ...rest }) => ({
				...rest,
				request: { ...request, method: "POST", session: "none" },
			}),
			floor,
		],
	])("%s", async (_, row, change, why) => {
		const { facts, policyData } = await factsOf(row);
		expect(whyNotSound(row.moment, change(facts), row.answer, policyData)).toMatch(new RegExp(`^${why}`));
	});
});

async function decideWith(policy: PolicySource, { moment, asked, data }: Row) {
	const faults: PolicyFault[] = [];
	const guard = await createResumeGuard({
		policy,
		data: await dataOf(data),
		onFault: (fault) => faults.push(fault),
	});
	const question = { ...questions[moment], ...asked };
	return { decision: ask(guard, moment, question), faults };
}

describe("a policy that answers so, through the guard", () => {
	it.each(Object.entries(sound))("is followed: %s", async (_, row) => {
		const { decision, faults } = await decideWith(handmadePolicy({ answer: row.answer }), row);
		expect(decision).toEqual(row.answer);
		expect(faults).toEqual([]);
	});

	it.each(Object.entries(unsound))("is not followed: %s", async (_, row) => {
		const { decision, faults } = await decideWith(handmadePolicy({ answer: row.answer }), row);
		expect(decision).toEqual({
			outcome: "refuse",
			code: "policy_fault",
			drift: [],
			session: "keep",
			status: 503,
			detail: "the policy's answer is not sound",
			...(row.moment === "resume" && stay),
		});
		expect(faults).toEqual([
			{ moment: row.moment, reason: expect.stringMatching(new RegExp(`^${row.why}`)) },
		]);
	});
});

const noOpa = await findOpa({ exact: true }).then(
	() => false,
	() => true,
);

// A policy in Rego that answers what it is told to, in a claim of the token.
const echo = (rules: (moment: string) => string) =>
	["session", "call", "resume", "delivery"].map((moment) => ({
		path: `${moment}.rego`,
		content: `package mcp.${moment}\n\n# METADATA\n# entrypoint: true\n${rules(moment)}\n`,
	}));

describe.skipIf(noOpa)("needs OPA: a policy in Rego", () => {
	const build = (files: { path: string; content: string }[]) =>
		inTemporaryFolder(files, (folder) => buildWasm([folder]));
	const told = (row: Row): Row => ({
		...row,
		asked: {
			session: { ...session, binding: { ...alice, told: row.answer } },
			presented: { ...token, told: row.answer },
			...row.asked,
		},
		data: { identity_claims: ["told"], ...row.data },
	});

	test("that lets everybody in is not followed", async () => {
		const policy = await build(echo(() => "decision := input.presented.told"));
		const row = told({ moment: "resume", answer: all });
		expect((await decideWith(policy, row)).decision).toEqual(all);
		const asked = { ...row.asked, presented: { ...token, sub: "mallory", told: all } };
		const { decision, faults } = await decideWith(policy, { ...row, asked });
		expect(decision).toMatchObject({ code: "policy_fault", ...stay });
		expect(faults).toHaveLength(1);
	});

	test("that is undefined is not followed", async () => {
		const policy = await build(echo(() => "decision := input.presented.told"));
		const { decision, faults } = await decideWith(policy, { moment: "session", answer: undefined });
		expect(decision).toMatchObject({ outcome: "refuse", code: "policy_fault", status: 503 });
		expect(faults).toHaveLength(1);
	});

	test("that contradicts itself is not followed", async () => {
		const rules = "decision := input.now\n\ndecision := input.presented.exp";
		const { decision, faults } = await decideWith(await build(echo(() => rules)), {
			moment: "call",
			answer: undefined,
		});
		expect(decision).toMatchObject({ outcome: "refuse", code: "policy_fault", status: 503 });
		expect(faults).toEqual([
			{
				moment: "call",
				reason: "the policy could not be evaluated",
				cause: expect.stringContaining("conflict"),
			},
		]);
	});

	test("without an entrypoint for a moment is none", async () => {
		const policy = await build(echo(() => "decision := {}").filter(({ path }) => path !== "delivery.rego"));
		await expect(createResumeGuard({ policy, data: { resources: [MCP] } })).rejects.toMatchObject({
			code: "policy_invalid",
			message: "the policy has no entrypoint mcp/delivery/decision",
		});
	});
});
