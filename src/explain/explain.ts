import type { Decisions } from "../decision.ts";
import { type Questions, readFacts } from "../facts.ts";
import type { Facts, Need } from "../generated/types.ts";
import type { Moment } from "../policy.ts";
import { compare } from "./compare.ts";
import { eventsOf, heldOf } from "./events.ts";
import type { Comparison, Explanation, LoggedDecision, Subject } from "./explanation.ts";
import { furtherOf } from "./further.ts";
import { type Asked, createOracle, type Oracle } from "./oracle.ts";
import { type Ground, lackOf, lacksSomething, needsOf, readRows } from "./rows.ts";
import { nameOfSubject, rightsOf, subjectOf } from "./subject.ts";
import { quote, quoteAll } from "./visible.ts";
import { askedOf, verdictOf } from "./words.ts";

/**
 * Decides a question and explains the decision. The decision is the guard's; the explanation is read from the facts
 * and from what the same guard answers to further questions (each need by itself, other tokens). Where these do not
 * go together, `disagreements` says so.
 *
 * @param question as a host asks it, or as the facts have it; without `now`, it is the current time
 * @param record what a decision log has of the same question
 */
export function explain<M extends Moment>(
	guard: Asked,
	moment: M,
	question: Questions[M],
	record?: LoggedDecision,
): Explanation {
	const oracle = createOracle(guard);
	const { data, revision } = guard;
	// One time for all that is asked.
	const asked = { ...question, now: question.now ?? Date.now() / 1000 };
	const decision: Decisions[Moment] = guard.probe[moment](asked as never);
	const facts = factsOf(moment, asked, oracle);
	const disagreements: string[] = [];

	const shown = {
		moment,
		revision,
		profile: data.profile,
		replay: data.replay,
		asked: askedOf(moment, facts),
		verdict: verdictOf(moment, decision, facts, data),
		decision,
		...(record !== undefined && { record }),
	};
	disagreements.push(...differencesFrom(record, decision, revision));

	const wasAsked = !("detail" in decision && decision.detail !== undefined);
	if (facts === undefined) {
		const { rows } = readRows(decision, moment, undefined);
		const summary = "Nothing can be compared: the question is not good.";
		const further = { summary: "No token: it is the question that is not good.", trials: [] };
		return { ...shown, comparison: { summary, claims: [] }, rows, further, disagreements, questions: 0 };
	}

	const events = eventsOf(facts, decision, oracle);
	const subject = subjectAt(moment, facts, decision, oracle);
	const compared = compare(facts, oracle);
	const ground: Ground = { moment, facts, oracle, compared, events, subject };
	const read = readRows(decision, moment, ground);
	disagreements.push(...read.disagreements, ...compared.disagreements);
	if (wasAsked)
		disagreements.push(...heldDisagreements(decision, ground), ...labelDisagreements(decision, subject));
	const { further, disagreements: others } = furtherOf(decision, ground);
	disagreements.push(...others);
	return {
		...shown,
		now: facts.now,
		...(events !== undefined && { events }),
		...(subject !== undefined && { subject }),
		comparison: comparisonOf(compared.comparison, decision),
		rows: read.rows,
		further,
		disagreements: [...new Set(disagreements)],
		questions: oracle.questions,
	};
}

// What is presented may be no token at all: the rest can be shown without it.
function factsOf(moment: Moment, question: object, { data }: Oracle): Facts | undefined {
	const reading = readFacts(moment, question, data);
	if ("facts" in reading) return reading.facts;
	if (reading.problem.kind !== "no_token") return undefined;
	const { presented: _, ...others } = question as { presented?: unknown };
	const rest = readFacts(moment, others, data);
	return "facts" in rest ? rest.facts : undefined;
}

function comparisonOf(comparison: Comparison, decision: Decisions[Moment]): Comparison {
	if (decision.code !== "token_missing" || !("detail" in decision) || decision.detail === undefined)
		return comparison;
	return {
		...comparison,
		summary: "What was presented are the claims of no token: there is nothing to compare.",
	};
}

/** What a call or a delivery is about. */
function subjectAt(
	moment: Moment,
	facts: Facts,
	decision: Decisions[Moment],
	oracle: Oracle,
): Subject | undefined {
	const held = heldOf(decision) !== undefined;
	const rights = rightsOf(facts);
	if (moment === "delivery" && facts.event !== undefined) return subjectOf(facts.event, rights, held, oracle);
	if (moment !== "call") return undefined;
	if (facts.reference !== undefined) return subjectOf(facts.reference, rights, held, oracle);
	const { tool, rpc = "" } = facts;
	const { tools, methods } = oracle.data;
	const [map, name] = tool === undefined ? [methods, rpc] : [tools, tool];
	const wild = tool !== undefined || !rpc.startsWith("tasks/") ? map["*"] : undefined;
	const mapped = Object.hasOwn(map, name) ? map[name] : wild;
	const label = tool === undefined ? { rpc } : { tool };
	if (mapped === undefined) return { ...label, held };
	return subjectOf({ ...label, ...mapped }, rights, held, oracle);
}

// The decision names the first need that is not met: so does what the policy says of each by itself.
function heldDisagreements(decision: Decisions[Moment], ground: Ground): string[] {
	const held = heldOf(decision);
	const unmet = needsOf(ground).find(({ missing }) => missing !== undefined && lacksSomething(missing));
	if (held === undefined || unmet === undefined) return [];
	const isSame =
		("first" in unmet ? unmet.first : undefined) ===
			(ground.moment === "resume" ? held.event_id : undefined) &&
		unmet.tool === held.tool &&
		unmet.rpc === held.rpc;
	const missing = unmet.missing ?? { aud: [], scope: [] };
	if (isSame && isSameNeed(missing, held.missing)) return [];
	return [
		`the decision holds ${quote(held.event_id ?? held.tool ?? held.rpc ?? "the session")}, which lacks ${lackOf(held.missing)}; asked one need at a time, the first that is not covered is ${nameOfSubject(unmet)}, which lacks ${lackOf(missing)}`,
	];
}

function labelDisagreements(decision: Decisions[Moment], subject: Subject | undefined): string[] {
	if (!("label" in decision) || subject?.need === undefined) return [];
	const { label } = decision;
	if (isSameNeed(label, subject.need)) return [];
	return [
		`the label to store needs ${lackOf(label)}; asked by itself, the call needs ${lackOf(subject.need)}`,
	];
}

function isSameNeed(one: Need, other: Need): boolean {
	const textOf = ({ aud, scope }: Need) => JSON.stringify([[...aud].sort(), [...scope].sort()]);
	return textOf(one) === textOf(other);
}

function differencesFrom(
	record: LoggedDecision | undefined,
	decision: Decisions[Moment],
	revision: string,
): string[] {
	const logged = record?.decision;
	if (logged === undefined) return [];
	const differing = (["outcome", "code", "session", "status", "deliver", "cursor"] as const).filter(
		(member) => memberOf(logged, member) !== memberOf(decision, member),
	);
	if (differing.length === 0) return [];
	const was = differing.map((member) => `${member} ${quote(memberOf(logged, member))}`);
	const by = record?.revision === undefined ? "" : ` (revision ${quote(record.revision)})`;
	const same = record?.revision === revision ? ", though the revision is the same" : "";
	return [
		`the log has ${was.join(", ")}${by}; what is explained here is what revision ${quote(revision)} answers${same}: it differs in ${quoteAll(differing)}`,
	];
}

function memberOf(decision: Decisions[Moment], member: string): unknown {
	return (decision as unknown as Record<string, unknown>)[member];
}
