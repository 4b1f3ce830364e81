import type { CompletePolicyData } from "../data.ts";
import type { Decisions } from "../decision.ts";
import type { CursorFacts, Missing, Need, RequestId } from "../generated/types.ts";
import type { Moment } from "../policy.ts";

/**
 * One decision, told to a person. What is a sentence here has its values escaped; `decision`, and the values under
 * `events` and `comparison`, are as they came, so that whoever shows them has to escape them.
 */
export interface Explanation {
	readonly moment: Moment;
	/** Of the policy and the data that decided. */
	readonly revision: string;
	readonly profile: CompletePolicyData["profile"];
	readonly replay: CompletePolicyData["replay"];
	/** NumericDate, seconds; absent where the question has none that is good. */
	readonly now?: number;
	/** What was asked, in a sentence. */
	readonly asked: string;
	/** Outcome, code, what happens to the session, HTTP status, what the client does next: a sentence. */
	readonly verdict: string;
	readonly decision: Decisions[Moment];
	/** resume only. */
	readonly events?: Events;
	/** call and delivery only: what the token needs for it. */
	readonly subject?: Subject;
	readonly comparison: Comparison;
	/** The decision table, in order: the first row that fires decides. */
	readonly rows: readonly Row[];
	readonly further: Further;
	/** Where what is told here and the decision do not go together. Empty, as long as the policy keeps to its table. */
	readonly disagreements: readonly string[];
	/** How many further questions the same policy was asked for this. */
	readonly questions: number;
	/** The record of a decision log that the question was taken from. */
	readonly record?: LoggedDecision;
}

/** What a decision log says of a decision. */
export interface LoggedDecision {
	readonly decision_id?: string;
	readonly timestamp?: string;
	readonly revision?: string;
	readonly decision?: Decisions[Moment];
}

/** The events after the cursor. */
export interface Events {
	readonly position: CursorFacts["position"];
	readonly cursor: { readonly before: string; readonly after: string };
	/** How many are pending, and how many of them go out. */
	readonly count: number;
	readonly deliver: number;
	readonly runs: readonly Run[];
	/** Calls of that stream that are still running. */
	readonly open: readonly Subject[];
}

/** What something is for, what it needs, and what the presented token lacks of it. */
export interface Subject {
	readonly tool?: string;
	readonly rpc?: string;
	readonly request_id?: RequestId;
	/** Its label and what data maps its tool or method to; absent where the policy did not say. */
	readonly need?: Need;
	/** Nothing in both: it is covered. Absent where the policy did not say. */
	readonly missing?: Missing;
	/** The decision names it as the first that is not covered. */
	readonly held: boolean;
}

/** Events in a row, from where a need first appears to where the next one does. */
export interface Run extends Subject {
	/** `dropped`: with the session, which ends. */
	readonly state: "delivered" | "held" | "waiting" | "dropped";
	readonly first: string;
	readonly count: number;
	/** The first is of this need; among those after it may be some of the needs of earlier runs. */
	readonly mixed: boolean;
}

/** The recorded binding against what is presented. */
export interface Comparison {
	/** What is compared, or why nothing is. */
	readonly summary: string;
	readonly claims: readonly Claim[];
}

/** How a presented claim stands to the recorded one; through coverage and aliases, for `aud`. */
export type Relation = "equal" | "narrower" | "wider" | "differs";

export interface Claim {
	readonly claim: string;
	/** Absent where there is nothing to compare with. */
	readonly relation?: Relation;
	/** By the policy: whether the session may go on with it. */
	readonly allowed: boolean;
	readonly recorded?: unknown;
	readonly presented?: unknown;
	readonly note?: string;
}

/**
 * `fired` decided; `not_fired` comes before it, and its condition did not hold; `not_reached` comes after it;
 * `not_asked` is no row of this moment.
 */
export type RowState = "fired" | "not_fired" | "not_reached" | "not_asked";

export interface Row {
	/** `1` to `10`, with `5a` to `5c` for what only some moments have, and `–` for what no row decides. */
	readonly row: string;
	readonly codes: readonly string[];
	readonly condition: string;
	readonly state: RowState;
	/** The facts that made it so. */
	readonly facts: string;
}

/** What token would get further, or why none can. */
export interface Further {
	readonly summary: string;
	/** What other tokens would get, asked of the same policy. */
	readonly trials: readonly Trial[];
}

export interface Trial {
	/** Which token. */
	readonly token: string;
	readonly aud: readonly string[];
	readonly scope: readonly string[];
	readonly outcome: string;
	readonly code: string;
	/** What it gets, in words. */
	readonly gets: string;
}
