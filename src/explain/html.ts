import { createHash } from "node:crypto";
import type { Claim, Events, Explanation, Row, Run, Subject, Trial } from "./explanation.ts";
import { html, type Markup, sign, table } from "./markup.ts";
import {
	checkOf,
	countsOf,
	coverOf,
	cursorOf,
	eventsOfRun,
	linesOf,
	markOf,
	needOf,
	ordered,
	purposeOfRun,
	recordOf,
	relationOf,
	rulesOf,
	shownOpen,
	shownRuns,
	subjectNameOf,
	valuesOf,
} from "./present.ts";
import { STYLE } from "./style.ts";
import { quote, visible } from "./visible.ts";

/**
 * An explanation as one page: no scripts, nothing from elsewhere, and a content security policy that allows nothing
 * but the page's own style.
 */
export function renderHtml(explanation: Explanation): string {
	const { decision, events, subject, comparison, rows, further, disagreements } = explanation;
	const tone = toneOf(decision.outcome);
	const style = STYLE + (events === undefined ? "" : stripStyle(events));
	const hash = createHash("sha256").update(style).digest("base64");
	const csp = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`;
	const record = recordOf(explanation);

	return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${csp}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>${decision.outcome}: ${quote(decision.code)} – mcp-resume-guard</title>
<style>${{ markup: style }}</style>
</head>
<body>
<main>
<header>
<h1><span class="outcome ${tone}">${decision.outcome}</span> <code>${quote(decision.code)}</code></h1>
<p class="verdict ${tone}"><span>${explanation.verdict}</span></p>
<p class="meta">${explanation.asked}</p>
${record === undefined ? "" : html`<p class="meta">${record}</p>\n`}<p class="meta">${rulesOf(explanation)}</p>
</header>
${disagreements.length === 0 ? "" : disagreementsOf(explanation)}${events === undefined ? "" : eventSection(events)}${
	subject === undefined ? "" : section("subject", "What it needs", subjectTable("subject", [subject]))
}${section(
	"claims",
	"Session and token",
	html`<p>${comparison.summary}</p>\n`,
	comparison.claims.length === 0 ? "" : claimTable(comparison.claims),
)}${section("rows", "Decision table", rowTable(rows))}${section(
	"further",
	"What would get further",
	html`<p>${further.summary}</p>\n`,
	further.trials.length === 0 ? "" : trialTable(further.trials),
)}${section("answer", "The decision as it was answered", html`<pre><code>${visibleJson(ordered(decision))}</code></pre>\n`)}${
	disagreements.length === 0 ? html`<footer class="check">${checkOf(explanation)}</footer>\n` : ""
}</main>
</body>
</html>
`.markup;
}

function section(id: string, title: string, ...content: readonly (Markup | "")[]): Markup {
	return html`<section aria-labelledby="${id}">
<h2 id="${id}">${title}</h2>
${content.filter((part) => part !== "")}</section>
`;
}

function disagreementsOf(explanation: Explanation): Markup {
	return html`<div class="check bad" role="note">
<p><strong>${checkOf(explanation)}</strong></p>
<ul>${explanation.disagreements.map((text) => html`<li>${text}</li>`)}</ul>
</div>
`;
}

function toneOf(outcome: string): "good" | "warn" | "bad" {
	if (outcome === "proceed") return "good";
	return outcome === "reauthorize" || outcome === "reauthenticate" ? "warn" : "bad";
}

// As wide as they are many; style attributes are not what the content security policy allows.
function stripStyle(events: Events): string {
	const { shown } = shownRuns(events);
	const longest = Math.max(1, ...shown.map(({ count }) => count));
	const grow = shown.map(
		({ count }, index) => `.strip .r${index}{flex-grow:${Math.max(1, Math.round((count / longest) * 40))}}`,
	);
	return `${grow.join("\n")}\n`;
}

const MARKS = { delivered: "■", held: "✗", waiting: "□", dropped: "–" } as const;

function eventSection(events: Events): Markup {
	const { shown, left } = shownRuns(events);
	const open = shownOpen(events);
	return section(
		"events",
		"Events",
		html`<p>${countsOf(events)} ${cursorOf(events)}</p>\n`,
		shown.length === 0 ? "" : strip(events, shown),
		shown.length === 0 ? "" : runTable(shown),
		left > 0 ? html`<p class="soft">… and ${String(left)} more needs.</p>\n` : "",
		open.shown.length === 0
			? ""
			: html`<h3 id="open">Calls still running</h3>\n${subjectTable("open", open.shown)}`,
		open.left > 0 ? html`<p class="soft">… and ${String(open.left)} more.</p>\n` : "",
	);
}

// Without its bullets a list is none for some who hear it, unless its role says so.
function strip({ cursor, deliver }: Events, runs: readonly Run[]): Markup {
	const delivered = runs.filter(({ state }) => state === "delivered").length;
	const items = runs.map(
		(run, index) =>
			html`<li class="${run.state} r${String(index)}">${sign(MARKS[run.state])}${quote(run.first, 40)}${
				run.count > 1 ? html`<br>×${String(run.count)}` : ""
			}<br>${run.state}</li>\n`,
	);
	const at = (id: string, word: string) =>
		html`<li class="at">${word}<br>${quote(id, 40)} <span aria-hidden="true">▸</span></li>\n`;
	return html`<ol class="strip" role="list" aria-label="Events in order">
${at(cursor.before, "cursor")}${items.slice(0, delivered)}${
	deliver > 0 ? at(cursor.after, "cursor then") : ""
}${items.slice(delivered)}</ol>
`;
}

function runTable(runs: readonly Run[]): Markup {
	const rows = runs.map((run) => ({
		tone: run.held ? ("bad" as const) : undefined,
		cells: [
			html`${sign(MARKS[run.state])}${run.state}`,
			code(eventsOfRun(run)),
			code(purposeOfRun(run)),
			code(needOf(run)),
			emphasised(coverOf(run), run.held),
		],
	}));
	const head = ["State", "Events", "Of", "Needs", "The token"];
	return table("events", head, rows, "A run for each need, from where it first appears.");
}

function subjectTable(heading: string, subjects: readonly Subject[]): Markup {
	const rows = subjects.map((subject) => ({
		tone: subject.held ? ("bad" as const) : undefined,
		cells: [
			html`${subject.held ? html`${sign("✗")}held: ` : ""}${code(subjectNameOf(subject))}`,
			code(needOf(subject)),
			emphasised(coverOf(subject), subject.held),
		],
	}));
	return table(heading, ["Of", "Needs", "The token"], rows);
}

function code(text: string): Markup {
	return html`<code>${text}</code>`;
}

function emphasised(text: string | Markup, strong: boolean): Markup {
	return strong ? html`<strong>${text}</strong>` : html`${text}`;
}

const SIGNS = { equal: "=", narrower: "<", wider: ">", differs: "≠" } as const;

function claimTable(claims: readonly Claim[]): Markup {
	const rows = claims.map((claim) => {
		const { recorded, presented } = valuesOf(claim);
		const { relation, allowed, note } = claim;
		const how = html`${relation === undefined ? "" : sign(SIGNS[relation])}${relationOf(claim)}`;
		return {
			tone: allowed ? undefined : ("bad" as const),
			cells: [
				code(quote(claim.claim, 40)),
				html`${emphasised(how, !allowed)}${note === undefined ? "" : html`<br><span class="soft">${note}</span>`}`,
				list(recorded),
				list(presented),
			],
		};
	});
	return table("claims", ["Claim", "Is", "Recorded", "Presented"], rows);
}

function list(values: readonly string[]): Markup {
	if (values.length === 1) return code(values[0] ?? "");
	return html`<ul>${values.map((value) => html`<li>${code(value)}</li>`)}</ul>`;
}

const TONES = { fired: "fired", not_fired: undefined, not_reached: "quiet", not_asked: "quiet" } as const;

function rowTable(rows: readonly Row[]): Markup {
	const shown = rows.map((row) => {
		const { state, condition, codes } = row;
		const isRead = state === "fired" || state === "not_fired";
		return {
			tone: TONES[state],
			cells: [
				html`${state === "fired" ? sign("▶") : ""}${row.row}`,
				codes.map((one, index) => html`${index === 0 ? "" : ", "}${code(one)}`),
				condition,
				state === "fired" ? "YES" : markOf(row),
				isRead ? row.facts : "",
			],
		};
	});
	const caption = "From top to bottom: the first row that fires decides.";
	return table("rows", ["Row", "Code", "Fires if", "Fired", "Because"], shown, caption);
}

function trialTable(trials: readonly Trial[]): Markup {
	const rows = trials.map(({ token, aud, scope, gets }) => ({
		cells: [token, list(linesOf(aud)), list(linesOf(scope)), gets],
	}));
	const caption = "The same question under other tokens, asked of the same policy.";
	return table("further", ["Token", "aud", "scope", "Gets"], rows, caption);
}

const LONGEST_JSON = 20_000;

// Line feeds here are those of the layout alone: JSON escapes its own.
function visibleJson(value: unknown): string {
	const lines = JSON.stringify(value, undefined, "  ").split("\n").map(visible).join("\n");
	return lines.length > LONGEST_JSON ? `${lines.slice(0, LONGEST_JSON)}\n…` : lines;
}
