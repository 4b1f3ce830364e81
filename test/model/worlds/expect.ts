import type { Answer, Need, Question } from "../reference/question.ts";
import { labelOf } from "../universe.ts";
import { ERA, expiryOf, START } from "./clock.ts";
import { alice, type CursorAt, type Layout, type Stage, type State, type Visitor } from "./world.ts";

/** What the reference says in a state. The event log's part of it is told from the state alone. */
export interface Expectation {
	resume(state: State, by: Visitor, at: CursorAt): Answer;
	/** Whether the event at a position may go out on a connection whose token was minted in `minted`. */
	covers(state: State, by: Visitor, minted: number, position: number): boolean;
	/** The last position that has gone when there are so many events: the log holds no more. */
	goneAt(appended: number): number;
	/** Calls whose response is not among the first so many events. */
	waitingAfter(position: number): readonly string[];
}

export function createExpectation(
	{ universe, reference, capacity }: Stage,
	layout: Layout,
	binding: Need,
	idAt: (cursor: CursorAt) => string,
): Expectation {
	const labels = new Map(layout.map((tool) => [tool, labelOf(universe, tool)]));
	const eventAt = (position: number) => {
		const tool = layout[position - 1] ?? "";
		return { request_id: tool, ...(labels.get(tool) ?? { aud: [], scope: [] }) };
	};
	// In the order in which the calls were opened.
	const waitingAfter = (position: number) =>
		[...new Set(layout)].filter((tool) => layout.slice(position).includes(tool));

	const goneAt = (appended: number) => Math.max(0, appended - capacity);

	function ground({ era, isAlive }: State, { claims, isLate }: Visitor, minted: number): Question {
		return {
			now: START + era * ERA,
			request: { method: "GET", transport: "streamable-http", session: isAlive ? "known" : "unknown" },
			...(isAlive && {
				session: { binding: { ...alice, ...binding }, transport: "streamable-http", opened_at: START },
			}),
			...(claims !== undefined && {
				presented: { ...claims, exp: expiryOf(isLate ? minted - 2 : minted) },
			}),
		};
	}

	function locate(
		{ appended, written }: State,
		at: CursorAt,
	): "retained" | "evicted" | "ahead" | "foreign" | "unknown" {
		if (typeof at !== "number") return at;
		if (at > written) return "ahead";
		return at < goneAt(appended) ? "evicted" : "retained";
	}

	return {
		goneAt,
		waitingAfter,
		resume(state, by, at) {
			const position = state.isAlive ? locate(state, at) : "unknown";
			const from = position === "retained" && typeof at === "number" ? at : state.appended;
			return reference("resume", {
				...ground(state, by, state.era),
				cursor: { last_event_id: idAt(at), position },
				pending: layout
					.slice(from, state.appended)
					.map((_, index) => ({ id: idAt(from + index + 1), ...eventAt(from + index + 1) })),
				open:
					position === "retained"
						? waitingAfter(state.appended).map((tool) => eventAt(layout.indexOf(tool) + 1))
						: [],
			});
		},
		covers: (state, by, minted, position) =>
			reference("delivery", {
				...ground(state, by, minted),
				event: { event_id: idAt(position), ...eventAt(position) },
			}).outcome === "proceed",
	};
}
