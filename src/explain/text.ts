import { styleText } from "node:util";
import { type Cell, columns, widthOf, wrap } from "./columns.ts";
import type { Claim, Events, Explanation, Row, Run, Subject } from "./explanation.ts";
import {
	checkOf,
	countsOf,
	coverOf,
	cursorOf,
	eventsOfRun,
	markOf,
	needOf,
	purposeOfRun,
	recordOf,
	relationOf,
	rulesOf,
	shownOpen,
	shownRuns,
	subjectNameOf,
	valuesOf,
} from "./present.ts";
import { rightsIn } from "./rows.ts";
import { quote } from "./visible.ts";

export interface TextOptions {
	/** Columns. */
	readonly width: number;
	readonly colour: boolean;
}

type Format = Parameters<typeof styleText>[0] | undefined;
/** Of no format: as it is. */
type Paint = (format?: Format) => (text: string) => string;

/** An explanation as text for a terminal. Without colours it says the same. */
export function renderText(explanation: Explanation, { width, colour }: TextOptions): string {
	const paint: Paint = (format) => (text) =>
		colour && format !== undefined && text !== "" ? styleText(format, text, { validateStream: false }) : text;
	const { decision, events, subject, comparison, rows, further, disagreements } = explanation;
	const record = recordOf(explanation);
	const prose = (text: string) => wrap(text, width);

	const lines = [
		paint(["bold", toneOf(decision.outcome)])(`${decision.outcome.toUpperCase()}  ${quote(decision.code)}`),
		"",
		...prose(explanation.verdict),
		"",
		...prose(explanation.asked).map(paint("dim")),
		...(record === undefined ? [] : prose(record).map(paint("dim"))),
		...prose(rulesOf(explanation)).map(paint("dim")),
		...section("Events", events === undefined ? [] : eventLines(events, width, paint)),
		...section("What it needs", subject === undefined ? [] : subjectLines([subject], width, paint)),
		...section("Session and token", [
			...prose(comparison.summary),
			...claimLines(comparison.claims, width, paint),
		]),
		...section("Decision table, the first row that fires decides", rowLines(rows, width, paint)),
		...section("What would get further", [
			...prose(further.summary),
			...further.trials.flatMap((trial) => [
				...wrap(`  ${trial.token}: ${rightsIn(trial)}`, width),
				...wrap(`    → ${trial.gets}`, width).map(paint(toneOf(trial.outcome))),
			]),
		]),
		"",
		...prose(checkOf(explanation)).map(paint(disagreements.length === 0 ? "dim" : ["bold", "red"])),
		...disagreements.flatMap((text) => indented(text, width)).map(paint("red")),
	];
	return `${lines.join("\n")}\n`;

	function section(title: string, content: readonly string[]): string[] {
		return content.length === 0 ? [] : ["", ...prose(title).map(paint("bold")), ...content];
	}
}

function indented(text: string, width: number): string[] {
	return wrap(text, width - 4).map((line, index) => `${index === 0 ? "  ! " : "    "}${line}`);
}

function toneOf(outcome: string): "green" | "yellow" | "red" {
	if (outcome === "proceed") return "green";
	return outcome === "reauthorize" || outcome === "reauthenticate" ? "yellow" : "red";
}

const STATES = {
	delivered: { mark: "■", tone: "green" },
	held: { mark: "✗", tone: "red" },
	waiting: { mark: "□", tone: "yellow" },
	dropped: { mark: "–", tone: "dim" },
} as const;

function eventLines(events: Events, width: number, paint: Paint): string[] {
	const { shown, left } = shownRuns(events);
	const open = shownOpen(events);
	return [
		...strip(events, width, paint),
		...wrap(`${countsOf(events)} ${cursorOf(events)}`, width),
		...columns(
			shown.flatMap((run) => {
				const { mark, tone } = STATES[run.state];
				return [
					[
						{ text: `  ${mark} ${run.state}`, style: paint(tone) },
						{ text: eventsOfRun(run) },
						{ text: purposeOfRun(run) },
						{ text: coverOf(run), style: paint(run.held ? "red" : undefined) },
					],
					...needLines(run, paint),
				];
			}),
			[1, 2, 3],
			width,
		),
		...(left > 0 ? [`  … and ${left} more needs`] : []),
		...(open.shown.length > 0 ? ["Calls still running:"] : []),
		...subjectLines(open.shown, width, paint),
		...(open.left > 0 ? [`  … and ${open.left} more`] : []),
	];
}

function needLines(subject: Subject, paint: Paint): Cell[][] {
	const { need, missing } = subject;
	if (need !== undefined && JSON.stringify(need) === JSON.stringify(missing)) return [];
	return [[{ text: `needs ${needOf(subject)}`, style: paint("dim"), below: true }]];
}

/** `41 ├■■■■■■│✗┤`: a cell for each event, or for each run at least one. */
function strip({ runs, cursor, count, deliver }: Events, width: number, paint: Paint): string[] {
	if (count === 0) return [];
	const name = quote(cursor.before, 20);
	const room = Math.max(10, Math.min(60, width - widthOf(name) - 14));
	const scale = count <= room ? 1 : room / count;
	let cells = "";
	let drawn = 0;
	let at = 0;
	for (const run of runs) {
		if (drawn >= room) {
			cells += "…";
			break;
		}
		const { mark, tone } = STATES[run.state];
		if (at === deliver && at > 0) cells += "│";
		const length = Math.max(1, Math.min(room - drawn, Math.round(run.count * scale)));
		cells += paint(tone)(cellsOf(run, mark, length));
		drawn += length;
		at += run.count;
	}
	const legend = "■ delivered  ✗ held  □ waiting";
	const used = widthOf(name) + drawn + 9 + legend.length;
	return used <= width
		? [`  ${name} ├${cells}┤   ${legend}`]
		: [`  ${name} ├${cells}┤`, ...wrap(`  ${legend}`, width)];
}

// Only the first event of a run is known to be of its need.
function cellsOf({ state }: Run, mark: string, length: number): string {
	return state === "held" ? mark + STATES.waiting.mark.repeat(length - 1) : mark.repeat(length);
}

function subjectLines(subjects: readonly Subject[], width: number, paint: Paint): string[] {
	return columns(
		subjects.flatMap((subject) => [
			[
				{ text: subject.held ? "  ✗" : "  ·", style: paint(subject.held ? "red" : undefined) },
				{ text: subjectNameOf(subject) },
				{ text: coverOf(subject), style: paint(subject.held ? "red" : undefined) },
			],
			...needLines(subject, paint),
		]),
		[1, 2],
		width,
	);
}

const SIGNS = { equal: "=", narrower: "<", wider: ">", differs: "≠" } as const;

function claimLines(claims: readonly Claim[], width: number, paint: Paint): string[] {
	if (claims.length === 0) return [];
	const head: Cell[] = ["", "claim", "", "recorded", "presented"].map((text) => ({
		text,
		style: paint("dim"),
	}));
	const rows = claims.flatMap((claim): Cell[][] => {
		const { relation, allowed, note } = claim;
		const { recorded, presented } = valuesOf(claim);
		const style = paint(allowed ? undefined : "red");
		const height = Math.max(recorded.length, presented.length);
		return [
			...Array.from({ length: height }, (_, at) => [
				{ text: at === 0 && relation !== undefined ? `  ${SIGNS[relation]}` : "   ", style },
				{ text: at === 0 ? quote(claim.claim, 40) : "" },
				{ text: at === 0 ? relationOf(claim) : "", style },
				{ text: recorded[at] ?? "" },
				{ text: presented[at] ?? "" },
			]),
			...(note === undefined
				? []
				: [[{ text: note, style: allowed ? paint("dim") : style, below: true as const }]]),
		];
	});
	return columns([head, ...rows], [3, 4], width);
}

function rowLines(rows: readonly Row[], width: number, paint: Paint): string[] {
	const asked = rows.filter(({ state }) => state !== "not_asked");
	const others = rows
		.filter(({ state }) => state === "not_asked")
		.map(({ row, codes }) => `${row} ${codes.join(", ")}`);
	return [
		...columns(
			asked.flatMap((row) => {
				const { state, codes } = row;
				const style = paint(state === "fired" ? "bold" : state === "not_fired" ? undefined : "dim");
				const facts = state === "not_fired" || state === "fired" ? row.facts : "";
				return codes.map((code, at) => [
					{ text: `${state === "fired" && at === 0 ? "▶" : " "} ${at === 0 ? row.row : ""}`, style },
					{ text: code, style },
					{ text: at === 0 ? markOf(row) : "", style },
					{ text: at === 0 ? facts : "", style },
				]);
			}),
			[3],
			width,
		),
		...(others.length > 0
			? wrap(`Not asked at this moment: ${others.join("; ")}.`, width).map(paint("dim"))
			: []),
	];
}
