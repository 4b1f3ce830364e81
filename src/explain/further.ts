import type { Decisions } from "../decision.ts";
import type { Questions } from "../facts.ts";
import type { Binding, Facts, Presented } from "../generated/types.ts";
import type { Moment } from "../policy.ts";
import { heldOf } from "./events.ts";
import type { Further, Trial } from "./explanation.ts";
import type { Oracle } from "./oracle.ts";
import { type Ground, lackOf, needsOf, rightsIn } from "./rows.ts";
import { counted, quote, quoteAll } from "./visible.ts";

/** Asks the same policy the same question under other tokens: what gets further is found out, not worked out. */
export function furtherOf(
	decision: Decisions[Moment],
	ground: Ground,
): { readonly further: Further; readonly disagreements: readonly string[] } {
	const { facts, moment, oracle } = ground;
	const { binding } = facts.session ?? {};
	const { presented } = facts;
	const trials: Trial[] = [];
	const disagreements: string[] = [];
	const end = decision.session === "end";

	function attempt(token: string, claims: Presented): Decisions[Moment] {
		const answer = askWith(facts, moment, claims, oracle);
		const { aud, scope } = claims;
		const { outcome, code } = answer;
		trials.push({ token, aud, scope, outcome, code, gets: whatItGets(answer) });
		return answer;
	}

	/** One more, with what the answer asks for. */
	function attemptRequired(answer: Decisions[Moment], claims: Presented): void {
		if (answer.outcome !== "reauthorize") return;
		const { aud, scope } = answer.required;
		const next = attempt("a token as required", { ...claims, aud, scope });
		if (next.outcome !== "proceed") {
			disagreements.push(
				`a token as required should proceed, but gets ${next.outcome} (${quote(next.code)})`,
			);
		}
	}

	const done = (summary: string) => ({ further: { summary, trials }, disagreements });
	const exp = facts.now + 3600;

	switch (decision.code) {
		case "covered":
			return done("Nothing more is needed.");

		case "token_missing":
		case "token_expired": {
			if (presented !== undefined) {
				const fresh = { ...presented, exp };
				attemptRequired(attempt("the same token, not expired", fresh), fresh);
			} else if (binding?.iss !== undefined) {
				const fresh = asPresented(binding, oracle, exp);
				attemptRequired(attempt("a token as the session was opened with", fresh), fresh);
			} else if (binding?.anonymous === true) {
				return done(
					"No token: the session was opened without one, and no token takes it over. Open a new session with a token.",
				);
			} else if (facts.request.session !== "unknown") {
				const fresh = somebody(oracle, exp);
				attemptRequired(attempt("any token for this server's first resource", fresh), fresh);
			}
			return done(
				trials.length === 0
					? "A valid token is needed first, and the session id is not known either: open a new session with it."
					: "A valid token is needed first. What the policy says then:",
			);
		}

		case "session_unknown":
			return done("No token: the session is not there any more, or never was. Open a new one.");
		case "session_required":
			return done("No token: the request has to name its session.");

		case "principal_drift": {
			if (binding?.anonymous === true) {
				return done("No token: the session was opened without one. Open a new session with this token.");
			}
			if (binding !== undefined) {
				attempt(
					"a token of the recorded principal, as the session was opened with",
					asPresented(binding, oracle, exp),
				);
			}
			return done(
				end
					? "None any more: this answer ended the session. For the record, what its owner would have got:"
					: "None of this principal. The session lives on for its owner:",
			);
		}

		case "binding_drift": {
			if (binding?.aud !== undefined && presented !== undefined) {
				const { aud, scope = [] } = binding;
				attempt("this principal's, with the recorded aud and scope", { ...presented, aud, scope });
			}
			const isRotated = decision.drift.includes("aud") && facts.presented?.aud.some(oracle.isOwn) === true;
			return done(
				`${
					end
						? "None any more: this answer ended the session."
						: "The recorded rights would, as long as the session lives."
				}${
					isRotated
						? " If the audience was rotated on purpose, declare the old and the new name in `aliases` of the policy data."
						: ""
				} For the record:`,
			);
		}

		case "audience_not_covered":
		case "scope_not_covered": {
			if (decision.outcome === "reauthorize") {
				const { aud, scope } = decision.required;
				const claims = presented ?? asPresented(binding ?? {}, oracle, exp);
				attemptRequired(decision, { ...claims, exp });
				return done(`A token with ${rightsIn({ aud, scope })}. Asked under it, the policy says:`);
			}
			const missing = lackOf(heldOf(decision)?.missing ?? { aud: [], scope: [] });
			if (decision.outcome === "reissue") {
				return done(
					`None: no token of this server can have all of it (${missing}). Call again what still waits, under what data maps now.`,
				);
			}
			const needs = needsOf(ground);
			const all = {
				aud: unionOf(needs.map(({ need }) => need?.aud ?? [])),
				scope: unionOf(needs.map(({ need }) => need?.scope ?? [])),
			};
			const why =
				binding?.anonymous === true
					? "the session was opened without a token, and no token takes it over"
					: `profile ${oracle.data.profile} lets no other token go on in this session`;
			return done(`None in this session: ${why}. A new session needs ${lackOf(all)} for what waits here.`);
		}

		case "cursor_unknown":
		case "cursor_evicted":
		case "cursor_ahead":
			return done("No token: it is the cursor that is not good, and the same for every token.");
		case "tool_unmapped":
			return done("No token: data has to map the tool or method first (`tools`, `methods`).");
		case "request_id_in_use":
			return done("No token: the call needs another JSON-RPC id, or the one that is open has to end.");
		case "quota_exceeded":
			return done("No token: running calls have to end, or buffered events to be acknowledged, first.");
		default:
			return done(
				decision.code.startsWith("custom:")
					? "That depends on the operator's own rule; it is in policies/mcp/custom."
					: "No token: it is not the token that is wrong.",
			);
	}
}

function askWith(facts: Facts, moment: Moment, presented: Presented, oracle: Oracle): Decisions[Moment] {
	return oracle.ask(moment, { ...facts, presented } as unknown as Questions[Moment]);
}

function asPresented(binding: Binding, oracle: Oracle, exp: number): Presented {
	const anybody = somebody(oracle, exp);
	const { iss = anybody.iss, sub = anybody.sub, aud = anybody.aud, scope = [] } = binding;
	return { ...binding, iss, sub, aud, scope, exp };
}

function somebody({ data }: Oracle, exp: number): Presented {
	const [aud = ""] = data.resources;
	return { iss: "urn:mcp-resume-guard", sub: "somebody", aud: [aud], scope: [], exp };
}

function whatItGets(decision: Decisions[Moment]): string {
	const held = heldOf(decision);
	const parts = [`${decision.outcome} (${quote(decision.code)})`];
	if ("deliver" in decision && decision.outcome === "proceed") {
		parts.push(`${counted(decision.deliver, "event")}, cursor ${quote(decision.cursor)}`);
	} else if ("deliver" in decision && decision.deliver > 0) {
		parts.push(`${counted(decision.deliver, "event")} first, cursor ${quote(decision.cursor)}`);
	}
	if (held !== undefined) parts.push(`lacks ${lackOf(held.missing)}`);
	if (decision.drift.length > 0) parts.push(`drift in ${quoteAll(decision.drift)}`);
	return parts.join(", ");
}

function unionOf(sets: readonly (readonly string[])[]): string[] {
	return [...new Set(sets.flat())].sort();
}
