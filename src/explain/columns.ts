// East Asian wide and emoji: two columns. Combining marks: none.
const WIDE =
	/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const MARK = /\p{M}/u;

/** How many columns of a terminal a text takes. */
export function widthOf(text: string): number {
	let width = 0;
	for (const character of text) width += widthOfOne(character);
	return width;
}

function widthOfOne(character: string): number {
	if (character >= " " && character <= "~") return 1;
	if (MARK.test(character)) return 0;
	return WIDE.test(character) ? 2 : 1;
}

/**
 * Breaks a text at spaces, and what is longer than a line, wherever the line ends. The lines begin where the text
 * does: spaces before it are before each of them.
 */
export function wrap(text: string, width: number): string[] {
	const indent = /^ */.exec(text)?.[0] ?? "";
	return wrapWords(text.slice(indent.length), Math.max(1, width - indent.length)).map((line) =>
		line === "" ? line : indent + line,
	);
}

function wrapWords(text: string, width: number): string[] {
	const lines: string[] = [];
	let line = "";
	let used = 0;
	const flush = () => {
		lines.push(line);
		line = "";
		used = 0;
	};
	for (const word of text.split(" ")) {
		const length = widthOf(word);
		if (used > 0 && used + 1 + length > width) flush();
		else if (used > 0) {
			line += " ";
			used += 1;
		}
		if (length <= width - used) {
			line += word;
			used += length;
			continue;
		}
		for (const character of word) {
			const one = widthOfOne(character);
			if (used > 0 && used + one > width) flush();
			line += character;
			used += one;
		}
	}
	flush();
	return lines;
}

export function pad(text: string, width: number): string {
	return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

export interface Cell {
	readonly text: string;
	readonly style?: (text: string) => string;
	/** The only cell of its row: it takes the whole width, a little to the right. */
	readonly below?: true;
}

const BELOW = 6;

/**
 * Rows of cells beside each other: columns as wide as they need to be, and where that is more than there is, the
 * flexible ones share the rest. Where even that is too narrow, cells go below each other.
 *
 * @param flexible indices of the columns that may be narrower than their text
 */
export function columns(
	rows: readonly (readonly Cell[])[],
	flexible: readonly number[],
	width: number,
): string[] {
	const count = Math.max(0, ...rows.map((row) => row.length));
	const beside = rows.filter(([cell]) => cell?.below !== true);
	const natural = Array.from({ length: count }, (_, index) =>
		Math.max(0, ...beside.map((row) => widthOf(row[index]?.text ?? ""))),
	);
	const widths = sharesOf(natural, flexible, width - 2 * Math.max(0, count - 1));
	if (widths === undefined)
		return rows.flatMap((row) => stacked(row[0]?.below === true ? [{ text: "" }, row[0]] : row, width));
	return rows.flatMap((row) => {
		if (row[0]?.below === true) return stacked([{ text: "" }, row[0]], width);
		const wrapped = row.map((cell, index) => wrap(cell.text, Math.max(1, widths[index] ?? 1)));
		const height = Math.max(...wrapped.map((lines) => lines.length));
		return Array.from({ length: height }, (_, at) => {
			const texts = wrapped.map((lines) => lines[at] ?? "");
			const last = texts.findLastIndex((text) => text !== "");
			return texts
				.slice(0, last + 1)
				.map((text, index) =>
					(row[index]?.style ?? same)(index === last ? text : pad(text, widths[index] ?? 0)),
				)
				.join("  ");
		});
	});
}

const same = (text: string) => text;

const NARROWEST = 18;

function sharesOf(
	natural: readonly number[],
	flexible: readonly number[],
	width: number,
): number[] | undefined {
	const total = natural.reduce((sum, one) => sum + one, 0);
	if (total <= width) return [...natural];
	const fixed = natural.reduce((sum, one, index) => (flexible.includes(index) ? sum : sum + one), 0);
	// The narrowest first: what it does not need is for the others.
	const order = [...flexible].sort((a, b) => (natural[a] ?? 0) - (natural[b] ?? 0));
	const widths = [...natural];
	let rest = width - fixed;
	for (const [at, index] of order.entries()) {
		const share = Math.min(natural[index] ?? 0, Math.floor(rest / (order.length - at)));
		if (share < Math.min(NARROWEST, natural[index] ?? 0)) return undefined;
		widths[index] = share;
		rest -= share;
	}
	return widths;
}

function stacked(row: readonly Cell[], width: number): string[] {
	return row.flatMap(({ text, style = same }, index) => {
		if (text === "") return [];
		const indent = index === 0 ? 0 : BELOW;
		return wrap(text, Math.max(10, width - indent)).map((line) => " ".repeat(indent) + style(line));
	});
}
