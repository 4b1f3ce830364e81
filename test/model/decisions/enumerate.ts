import type { ResumeGuard } from "../../../src/guard.ts";
import { NOW } from "../arbitraries.ts";
import { ask, type CompletePolicyData, guardOf } from "../guard.ts";
import { isSameAnswer } from "../reference/compare.ts";
import { standsFor } from "../reference/coverage.ts";
import { createReference, type Moment, type Reference } from "../reference/decide.ts";
import type { Answer, Need, Question, Waiting } from "../reference/question.ts";
import { labelOf, PROFILES, REPLAYS, sequencesOf, subsetsOf, type Universe } from "../universe.ts";

export interface Bounds {
	/** Pending events. */
	readonly events: number;
	/** Every so many-th situation is looked at; a prime keeps that from one side only. 1: nothing is left out. */
	readonly stride: number;
}

export interface Count {
	/** Binding, stream and token, in one profile and mode. */
	situations: number;
	decisions: number;
	/** Decisions by what they are. */
	readonly kinds: Map<string, number>;
}

/** A stream as a cursor finds it. */
interface Stream {
	readonly pending: readonly Waiting[];
	readonly open: Question["open"] & {};
}

/**
 * Every decision about a world up to the bounds: each profile and mode, each token that opened the session, each that
 * is presented, each stream of events and of calls that still run. Throws at the first that breaks the contract.
 */
export async function enumerateDecisions(universe: Universe, bounds: Bounds): Promise<Count> {
	const count: Count = { situations: 0, decisions: 0, kinds: new Map() };
	const streams = streamsOf(universe, bounds.events);
	let turn = 0;
	const isTurn = () => {
		turn += 1;
		return turn % bounds.stride === 0;
	};
	for (const profile of PROFILES) {
		for (const replay of REPLAYS) {
			const guard = await guardOf({ ...universe.data, profile, replay });
			const check = checkerOf(guard, count);
			for (const binding of universe.tokens) {
				checkRequests(universe, binding, check, isTurn);
				for (const stream of streams) {
					if (!isTurn()) continue;
					checkStream(universe, guard.data, binding, stream, check, turn);
					count.situations += universe.tokens.length;
				}
			}
		}
	}
	return count;
}

function streamsOf(universe: Universe, events: number): Stream[] {
	const { tools, isSymmetric } = universe;
	const lengths = Array.from({ length: events + 1 }, (_, length) => length);
	const sequences = lengths.flatMap((length) => sequencesOf(tools, length, isSymmetric));
	return sequences.flatMap((sequence) =>
		subsetsOf(tools).map((running) => ({
			pending: sequence.map((tool, index) => ({
				id: `s.${index + 1}`,
				request_id: tools.indexOf(tool),
				...labelOf(universe, tool),
			})),
			open: running.map((tool) => ({ request_id: tools.indexOf(tool), ...labelOf(universe, tool) })),
		})),
	);
}

type Check = (moment: Moment, question: Question) => Answer;

/** Asks the guard, and holds the whole decision against the reference's. */
function checkerOf(guard: ResumeGuard, count: Count): Check {
	const reference: Reference = createReference(guard.data);
	return (moment, question) => {
		const decision: Answer = ask(guard, moment, question);
		const expected = reference(moment, question);
		if (!isSameAnswer(decision, expected)) {
			fail("the guard decides other than the reference", { moment, question, decision, expected });
		}
		count.decisions += 1;
		const kind = `${moment} ${decision.outcome} ${decision.code}`;
		count.kinds.set(kind, (count.kinds.get(kind) ?? 0) + 1);
		return decision;
	};
}

const alice = { iss: "https://as.example.com", sub: "alice", client_id: "desktop" };

function questionOf(binding: Need, presented: object | undefined, method: "GET" | "POST"): Question {
	return {
		now: NOW,
		request: { method, transport: "streamable-http", session: "known" },
		session: { binding: { ...alice, ...binding }, transport: "streamable-http", opened_at: NOW - 60 },
		...(presented !== undefined && { presented: { ...alice, exp: NOW + 60, ...presented } }),
	};
}

/** What does not depend on a stream: the session, calls of each tool, one event of each, whoever asks. */
function checkRequests(universe: Universe, binding: Need, check: Check, isTurn: () => boolean): void {
	const { tools, tokens } = universe;
	for (const token of tokens) {
		if (!isTurn()) continue;
		const presenters = [
			token,
			{ ...token, sub: "bob" },
			{ ...token, client_id: undefined },
			{ ...token, exp: NOW - 31 },
			{ ...token, exp: NOW - 30 },
			{ ...token, exp: NOW - 29 },
		];
		for (const presented of presenters) {
			const post = questionOf(binding, presented, "POST");
			check("session", { ...post, rpc: "ping" });
			check("resume", { ...questionOf(binding, presented, "GET"), cursor: cursorAt("retained") });
			for (const tool of tools) {
				check("call", { ...post, tool });
				check("delivery", { ...post, event: { event_id: "s.1", request_id: 1, ...labelOf(universe, tool) } });
			}
		}
		const { session: _, ...stranger } = questionOf(binding, token, "POST");
		for (const session of ["none", "unknown"] as const) {
			const request = { ...stranger.request, session };
			for (const tool of tools) check("call", { ...stranger, request, tool });
			check("session", { ...stranger, request, rpc: "initialize" });
			check("resume", {
				...stranger,
				request: { ...request, method: "GET" },
				cursor: cursorAt("retained"),
			});
		}
	}
	check("session", questionOf(binding, undefined, "POST"));
	check("resume", { ...questionOf(binding, undefined, "GET"), cursor: cursorAt("retained") });
}

function cursorAt(position: (Question["cursor"] & {})["position"]) {
	return { last_event_id: "s.0", position };
}

/** A resume of one stream, with each token. */
function checkStream(
	universe: Universe,
	data: CompletePolicyData,
	binding: Need,
	{ pending, open }: Stream,
	check: Check,
	turn: number,
): void {
	const { tokens } = universe;
	const resume = (presented: object, position: Parameters<typeof cursorAt>[0] = "retained") => {
		const cursor = cursorAt(position);
		return check("resume", { ...questionOf(binding, presented, "GET"), cursor, pending, open });
	};
	const answers = tokens.map((token) => resume(token));

	const tried = new Set<string>();
	for (const [index, answer] of answers.entries()) {
		const token = tokens[index] as Need;
		checkDelivery(data, token, pending, answer);
		if (answer.required !== undefined) {
			const key = JSON.stringify(answer.required);
			if (!tried.has(key) && resume(answer.required).outcome !== "proceed") {
				fail("a token as required does not proceed", { binding, token, pending, open, answer });
			}
			tried.add(key);
		}
		for (const [other, more] of answers.entries()) {
			if (!isWithin(token, tokens[other] as Need) || isDrift(answer) || isDrift(more)) continue;
			if (rank(answer) > rank(more)) {
				fail("a token with less is answered more", {
					binding,
					token,
					wider: tokens[other],
					pending,
					answer,
					more,
				});
			}
		}
	}

	const token = tokens[turn % tokens.length] as Need;
	const position = (["evicted", "ahead", "foreign", "unknown"] as const)[turn % 4] ?? "unknown";
	resume(token, position);
	const otherwise = (need: Need) => ({
		...need,
		aud: twisted(need.aud, turn),
		scope: twisted(need.scope, turn),
	});
	const question = {
		...questionOf(otherwise(binding), otherwise(token), "GET"),
		cursor: cursorAt("retained"),
		pending: pending.map((event) => ({ ...event, ...otherwise(event) })),
		open: open.map((call) => ({ ...call, ...otherwise(call) })),
	};
	if (!isSameAnswer(check("resume", question), answers[turn % tokens.length] as Answer)) {
		fail("order or repetition in aud or scope matters", { question });
	}
}

/** The first law, once more and in the fewest words: what goes out is covered, from the front, without a gap. */
function checkDelivery(
	{ coverage, aliases, replay }: CompletePolicyData,
	token: Need,
	pending: readonly Waiting[],
	answer: Answer,
): void {
	const { deliver = 0, outcome, cursor } = answer;
	const isCovered = ({ aud, scope }: Need) =>
		scope.every((value) => token.scope.includes(value)) &&
		aud.every((resource) =>
			token.aud
				.flatMap((audience) => [audience, ...aliases.filter((set) => set.includes(audience)).flat()])
				.some((name) =>
					[resource, ...aliases.filter((set) => set.includes(resource)).flat()].some(
						(other) => name === other || (coverage[name] ?? []).some((entry) => standsFor(entry, other)),
					),
				),
		);
	const isWhole = outcome === "proceed" && deliver === pending.length;
	const isPart = outcome === "reauthorize" && replay === "prefix" && deliver < pending.length;
	if (deliver > 0 && !isWhole && !isPart) fail("something goes out that should not", { token, answer });
	if (!pending.slice(0, deliver).every(isCovered)) fail("an event goes out uncovered", { token, answer });
	if (cursor !== (pending[deliver - 1]?.id ?? "s.0")) fail("the cursor is elsewhere", { token, answer });
	const next = pending[deliver];
	// An empty label needs what session-level messages need.
	const isLabelled = next !== undefined && next.aud.length + next.scope.length > 0;
	if (isPart && isLabelled && isCovered(next)) fail("a covered event is held", { token, answer });
}

function isWithin(some: Need, others: Need): boolean {
	return (
		some.aud.every((one) => others.aud.includes(one)) && some.scope.every((one) => others.scope.includes(one))
	);
}

function isDrift({ code }: Answer): boolean {
	return code === "binding_drift";
}

/** How much a token is answered. */
function rank({ outcome, deliver = 0 }: Answer): number {
	return outcome === "proceed" ? Number.POSITIVE_INFINITY : deliver;
}

/** The same set, otherwise written. */
function twisted(values: readonly string[], turn: number): string[] {
	const reversed = [...values].reverse();
	return [...reversed, ...reversed.slice(0, turn % 3), ...values.slice(0, turn % 2)];
}

function fail(what: string, about: object): never {
	throw new Error(`${what}:\n${JSON.stringify(about, undefined, "\t")}`);
}
