import { styleText } from "node:util";

export type EventState = "delivered" | "pending" | "held" | "lost" | "dropped";

export interface EventRow {
	readonly id: string;
	readonly tool: string | undefined;
	readonly what: string;
	readonly state: EventState;
}

/** Writes what happens as it happens. */
export interface Timeline {
	story(title: string): void;
	/** A run of a story; the clock starts again. */
	run(title: string): void;
	/** Who does what, with the seconds since the run began. */
	step(who: string, ...what: readonly string[]): void;
	events(rows: readonly EventRow[]): void;
}

type Style = Parameters<typeof styleText>[0];

const STATES: Record<EventState, Style> = {
	delivered: "green",
	pending: "yellow",
	held: "yellow",
	lost: "red",
	dropped: "red",
};
const INDENT = " ".repeat(17);

export function createTimeline(write: (line: string) => void, colours: boolean): Timeline {
	const styled = (style: Style, text: string) => (colours ? styleText(style, text) : text);
	let began = performance.now();

	return {
		story(title) {
			write(`\n${styled("bold", title)}\n${"=".repeat(title.length)}`);
		},
		run(title) {
			began = performance.now();
			write(`\n${styled("bold", `--- ${title}`)}`);
		},
		step(who, first, ...further) {
			const seconds = ((performance.now() - began) / 1000).toFixed(2).padStart(5);
			write(`${seconds}  ${styled("bold", who.padEnd(8))}  ${first}`);
			for (const line of further) write(INDENT + line);
		},
		events(rows) {
			for (const { id, tool = "", what, state } of rows) {
				const columns = [id.padStart(4), tool.padEnd(7), what.padEnd(18), styled(STATES[state], state)];
				write(INDENT + columns.join("  "));
			}
		},
	};
}
