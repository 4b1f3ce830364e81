import type { Label } from "../../../src/generated/types.ts";
import { areEqual, type Principal, readPrincipal } from "./claims.ts";
import { type Coverage, createCoverage, type Data } from "./coverage.ts";
import { isNothing, mappedNow, NOTHING, needOf, together } from "./need.ts";
import type { Answer, Need, Needed, Question, Waiting } from "./question.ts";

export type Moment = "session" | "call" | "resume" | "delivery";

/** The two laws and the rows of the answer in plain TypeScript: what the policy has to decide. */
export type Reference = (moment: Moment, question: Question) => Answer;

/** @param data complete; an operator's own rules are no part of it */
export function createReference(data: Data): Reference {
	const coverage = createCoverage(data);
	return (moment, question) => {
		const asked = read(data, coverage, moment, question);
		return decide[moment](asked);
	};
}

/** A question, with what its rows look at. */
interface Asked {
	readonly data: Data;
	readonly coverage: Coverage;
	readonly moment: Moment;
	readonly question: Question;
	/** `undefined`: there is no token. */
	readonly token: Principal | undefined;
	/** `undefined`: no session is known, or it is anonymous. */
	readonly binding: Principal | undefined;
	readonly isKnown: boolean;
	readonly isAnonymous: boolean;
}

function read(data: Data, coverage: Coverage, moment: Moment, question: Question): Asked {
	const { session, presented } = question;
	const isAnonymous = session?.binding.anonymous === true;
	return {
		data,
		coverage,
		moment,
		question,
		token: presented && readPrincipal(presented, data.identity_claims),
		binding: session && !isAnonymous ? readPrincipal(session.binding, data.identity_claims) : undefined,
		isKnown: session !== undefined,
		isAnonymous,
	};
}

const decide: Record<Moment, (asked: Asked) => Answer> = {
	session(asked) {
		const { request } = asked.question;
		return (
			tokenRow(asked) ??
			sessionRow(asked) ??
			principalRow(asked) ??
			profileRow(asked) ??
			(request.method === "POST" && request.id === "in_use"
				? refusal(asked, "refuse", "request_id_in_use", 400)
				: undefined) ??
			((request.method === "POST" || opensSse(asked)) && request.quota === "exceeded"
				? refusal(asked, "refuse", "quota_exceeded", 429)
				: undefined) ??
			// A GET has no JSON-RPC id that could be in use.
			(opensSse(asked) && request.id === "in_use"
				? refusal(asked, "refuse", "undecided", 403)
				: undefined) ?? { ...PROCEED, label: asked.data.session_need }
		);
	},

	call(asked) {
		const { data, question } = asked;
		const { tool, rpc, reference, request } = question;
		const subject = subjectOf(reference ?? question);
		const refused =
			tokenRow(asked) ?? sessionRow(asked) ?? principalRow(asked) ?? profileRow(asked) ?? undefined;
		if (refused) return refused;
		const mapped = reference ?? mappedNow(data, { ...(tool !== undefined ? { tool } : { rpc: rpc ?? "" }) });
		if (mapped === undefined) return refusal(asked, "refuse", "tool_unmapped", 403);
		if (request.id === "in_use") return refusal(asked, "refuse", "request_id_in_use", 400);
		if (request.quota === "exceeded") return refusal(asked, "refuse", "quota_exceeded", 429);
		const need = needOf(data, { ...subject, aud: [...mapped.aud], scope: [...mapped.scope] });
		const missing = missingOf(asked, need);
		if (!isNothing(missing)) return notCovered(asked, need, { ...subject, missing });
		return { ...PROCEED, label: { ...subject, aud: [...need.aud], scope: [...need.scope] } };
	},

	resume(asked) {
		const { data, question } = asked;
		const { cursor, pending = [], open = [] } = question;
		const lastEventId = cursor?.last_event_id ?? "";
		const stay = { deliver: 0, cursor: lastEventId };
		const refused =
			tokenRow(asked) ??
			sessionRow(asked) ??
			principalRow(asked) ??
			profileRow(asked) ??
			cursorRow(asked) ??
			undefined;
		if (refused) return { ...refused, ...stay };

		const isAtomic = data.replay === "atomic";
		const waiting: readonly (Needed & Partial<Waiting>)[] = isAtomic ? [...pending, ...open] : pending;
		const at = waiting.findIndex((one) => !isNothing(missingOf(asked, needOf(data, one))));
		const held = waiting[at];
		if (held === undefined) {
			return { ...PROCEED, deliver: pending.length, cursor: pending.at(-1)?.id ?? lastEventId };
		}
		const { id, request_id } = held;
		const answer = notCovered(asked, together(waiting.map((one) => needOf(data, one))), {
			...(id !== undefined && { event_id: id }),
			...(request_id !== undefined && { request_id }),
			...subjectOf(held),
			missing: missingOf(asked, needOf(data, held)),
		});
		if (isAtomic || answer.outcome !== "reauthorize") return { ...answer, ...stay };
		return { ...answer, deliver: at, cursor: pending[at - 1]?.id ?? lastEventId };
	},

	delivery(asked) {
		const { data, question, isKnown, token } = asked;
		const { event } = question;
		const refused = tokenRow(asked);
		if (refused) return refused;
		// Whose stream it is was decided when it was opened: to anybody else nothing is said of what waits there.
		const isPrincipals = token === undefined || (isKnown ? drift(asked).length === 0 : needsNoSession(asked));
		if (event === undefined || !isPrincipals) return refusal(asked, "refuse", "undecided", 403);
		const need = needOf(data, event);
		const missing = missingOf(asked, need);
		if (isNothing(missing)) return PROCEED;
		const { event_id, request_id } = event;
		return notCovered(asked, need, {
			...(event_id !== undefined && { event_id }),
			...(request_id !== undefined && { request_id }),
			...subjectOf(event),
			missing,
		});
	},
};

const PROCEED: Answer = { outcome: "proceed", code: "covered", drift: [], session: "keep", status: 200 };

function refusal(
	{ data }: Asked,
	outcome: Answer["outcome"],
	code: string,
	usual: number,
	session: Answer["session"] = "keep",
): Answer {
	return { outcome, code, drift: [], session, status: statusOf(data, code, usual) };
}

function statusOf({ status }: Data, code: string, usual: number): number {
	return (Object.hasOwn(status, code) ? status[code] : undefined) ?? usual;
}

function subjectOf({ tool, rpc }: Partial<Label>): Partial<Label> {
	return { ...(tool !== undefined && { tool }), ...(rpc !== undefined && { rpc }) };
}

/** Row 1: no token, or one that has expired. */
function tokenRow(asked: Asked): Answer | undefined {
	const { data, question, token } = asked;
	const { now, presented } = question;
	if (token === undefined) {
		const isAllowed = data.anonymous && (asked.isAnonymous || opensAnonymously(asked));
		return isAllowed ? undefined : refusal(asked, "reauthenticate", "token_missing", 401);
	}
	const isValid = now < (presented?.exp as number) + data.clock_skew;
	return isValid ? undefined : refusal(asked, "reauthenticate", "token_expired", 401);
}

function opensAnonymously(asked: Asked): boolean {
	const { moment, question } = asked;
	const { session, method } = question.request;
	const isInitialize = moment === "session" && method === "POST" && question.rpc === "initialize";
	return session === "none" && (isInitialize || opensSse(asked));
}

/** HTTP+SSE (MCP 2024-11-05): a GET without a session id opens the session. */
function opensSse({ moment, question }: Asked): boolean {
	const { session, method, transport } = question.request;
	return moment === "session" && session === "none" && method === "GET" && transport === "sse";
}

/** A host without sessions, `initialize`, and the GET of HTTP+SSE. */
function needsNoSession(asked: Asked): boolean {
	const { session, method } = asked.question.request;
	return (session === "none" && method === "POST" && asked.moment !== "resume") || opensSse(asked);
}

/** Row 2: a session id that is not known, or none where one is needed. */
function sessionRow(asked: Asked): Answer | undefined {
	const { session } = asked.question.request;
	if (session === "unknown") return refusal(asked, "reinitialize", "session_unknown", 404);
	if (session === "known" || needsNoSession(asked)) return undefined;
	return refusal(asked, "refuse", "session_required", 400);
}

/** Row 3: another principal. A stranger whose owner's session lives gets what an unknown id gets. */
function principalRow(asked: Asked): Answer | undefined {
	const { data, isKnown } = asked;
	const drifted = isKnown ? drift(asked) : [];
	if (drifted.length === 0) return undefined;
	if (data.foreign_principal === "end") {
		return { ...refusal(asked, "reinitialize", "principal_drift", 403, "end"), drift: drifted };
	}
	const status = statusOf(data, "session_unknown", 404);
	return { ...refusal(asked, "reinitialize", "principal_drift", 403), drift: drifted, status };
}

/** The identity claims that differ. In an anonymous session there are none to be equal to. */
function drift({ data, token, binding }: Asked): string[] {
	const names = ["iss", "sub", "client_id", "cnf", ...data.identity_claims];
	return names
		.filter((name) => !areEqual(token?.identity[name], binding?.identity[name]))
		.filter((name, index, all) => all.indexOf(name) === index)
		.sort();
}

/** Row 4: `aud` or `scope` have changed in a way that the profile does not allow. */
function profileRow(asked: Asked): Answer | undefined {
	const { token, binding } = asked;
	if (token === undefined || binding === undefined) return undefined;
	const broken = [
		...(isAudKept(asked, token, binding) ? [] : ["aud"]),
		...(isScopeKept(asked, token, binding) ? [] : ["scope"]),
	];
	if (broken.length === 0) return undefined;
	return { ...refusal(asked, "reinitialize", "binding_drift", 403, "end"), drift: broken };
}

function isAudKept({ data, coverage }: Asked, token: Principal, binding: Principal): boolean {
	const presented = token.aud.filter(coverage.isOwn);
	const recorded = binding.aud.filter(coverage.isOwn);
	switch (data.profile) {
		case "strict":
			return coverage.areSame(token.aud, binding.aud);
		case "covering":
			return (
				presented.length > 0 &&
				recorded.length > 0 &&
				(coverage.coversAll(recorded, presented) || coverage.coversAll(presented, recorded))
			);
		case "per-tool":
			return presented.length > 0;
	}
}

function isScopeKept({ data }: Asked, token: Principal, binding: Principal): boolean {
	const isWithin = (some: readonly string[], others: readonly string[]) =>
		some.every((scope) => others.includes(scope));
	switch (data.profile) {
		case "strict":
			return isWithin(token.scope, binding.scope) && isWithin(binding.scope, token.scope);
		case "covering":
			return isWithin(binding.scope, token.scope);
		case "per-tool":
			return true;
	}
}

/** Rows 6 to 8: where the cursor stands. */
function cursorRow(asked: Asked): Answer | undefined {
	switch (asked.question.cursor?.position) {
		case "retained":
			return undefined;
		case "evicted":
			return refusal(asked, "reissue", "cursor_evicted", 410);
		case "ahead":
			return refusal(asked, "refuse", "cursor_ahead", 400);
		default:
			return refusal(asked, "reissue", "cursor_unknown", 400);
	}
}

/** What of a need the presented token lacks. */
function missingOf({ coverage, token }: Asked, { aud, scope }: Need): Need {
	return {
		aud: aud.filter((resource) => !coverage.covers(token?.aud ?? [], resource)),
		scope: scope.filter((value) => !token?.scope.includes(value)),
	};
}

/** Row 9. */
function notCovered(asked: Asked, needs: Need, held: Answer["held"] & {}): Answer {
	const code = held.missing.aud.length > 0 ? "audience_not_covered" : "scope_not_covered";
	const { data, isKnown, isAnonymous } = asked;
	// Under `strict` only a token like the recorded one goes on, and it is not enough; an anonymous session takes none.
	if (isKnown && (isAnonymous || data.profile === "strict")) {
		return { ...refusal(asked, "reinitialize", code, 403), held };
	}
	const required = requiredFor(asked, needs);
	return required === undefined
		? { ...refusal(asked, "reissue", code, 403), held }
		: { ...refusal(asked, "reauthorize", code, 403), held, required };
}

/** A token that would proceed; `undefined`: this server's verifier would refuse every such token. */
function requiredFor({ data, coverage, binding }: Asked, needs: Need): Need | undefined {
	const isBound = binding !== undefined && data.profile === "covering";
	if (!isBound) {
		const aud = needs.aud.length > 0 ? needs.aud : data.resources.slice(0, 1);
		return aud.every(coverage.isOwn) ? together([{ aud, scope: needs.scope }]) : undefined;
	}
	const scope = [...needs.scope, ...binding.scope];
	const recorded = binding.aud.filter(coverage.isOwn);
	if (recorded.length === 0 || !needs.aud.every(coverage.isOwn)) return undefined;
	const suffices = needs.aud.length > 0 && coverage.coversAll(recorded, needs.aud);
	return together([NOTHING, { aud: suffices ? needs.aud : [...needs.aud, ...recorded], scope }]);
}
