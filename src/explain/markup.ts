/** Markup: what is put into it as text is escaped. */
export interface Markup {
	readonly markup: string;
}

export type Part = string | Markup | readonly Markup[];

/** Markup with parts in it: text is escaped, for content and for attributes in quotes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
	const markup = strings.map(
		(string, index) => string + (index < parts.length ? render(parts[index] ?? "") : ""),
	);
	return { markup: markup.join("") };
}

function render(part: Part): string {
	if (typeof part === "string") return escapeMarkup(part);
	return "markup" in part ? part.markup : part.map(({ markup }) => markup).join("");
}

const ENTITIES = new Map([
	["&", "&amp;"],
	["<", "&lt;"],
	[">", "&gt;"],
	['"', "&quot;"],
	["'", "&#39;"],
]);

function escapeMarkup(text: string): string {
	return text.replace(/[&<>"']/g, (character) => ENTITIES.get(character) ?? "");
}

/** A sign for those who see it; what it says is there as a word, too. */
export function sign(character: string): Markup {
	return html`<span aria-hidden="true">${character}</span> `;
}

export interface TableRow {
	/** The first is the row's header. */
	readonly cells: readonly Part[];
	readonly tone?: "fired" | "quiet" | "bad" | undefined;
}

/**
 * A table that its caption, or else a heading, names. Where it is wider than the page it is scrolled by itself, which
 * needs no mouse.
 *
 * @param heading the id of the heading above it
 */
export function table(
	heading: string,
	head: readonly string[],
	rows: readonly TableRow[],
	caption?: string,
): Markup {
	return html`<div class="scroll" role="group" tabindex="0" aria-labelledby="${heading}">
<table${caption === undefined ? html` aria-labelledby="${heading}"` : ""}>
${caption === undefined ? "" : html`<caption>${caption}</caption>\n`}<thead><tr>${head.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
<tbody>
${rows.map(({ cells, tone }) => html`<tr${tone === undefined ? "" : html` class="${tone}"`}>${cells.map((cell, index) => (index === 0 ? html`<th scope="row">${cell}</th>` : html`<td>${cell}</td>`))}</tr>\n`)}</tbody>
</table>
</div>
`;
}
