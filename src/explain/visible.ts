// Whatever has no shape of its own: controls, bidirectional and other format characters, lone surrogates, line
// separators, fillers, and spaces that are not the space.
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;
const BEYOND_ASCII = /[^ -~]/gu;

/** Text that moves no cursor, hides nothing and reads in the order in which it is: the rest as `\u{…}`. */
export function visible(text: string): string {
	return text.replace(UNSEEN, escaped);
}

/** The same in ASCII alone, for two texts that differ and may look alike. */
export function inAscii(text: string): string {
	return text.replace(BEYOND_ASCII, escaped);
}

function escaped(character: string): string {
	return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

const PLAIN = /^[\w.:/@~+*%?#&=!$-]+$/;

/** A value in a sentence: bare if it cannot be taken for words of the sentence, quoted if it can, cut if it is long. */
export function quote(value: unknown, limit = 160): string {
	if (typeof value === "number" || typeof value === "boolean") return String(value);
	const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
	const cut = text.length > limit ? text.slice(0, limit) : text;
	const rest = text.length > limit ? `… (${text.length - limit} characters more)` : "";
	if (typeof value === "string" && !PLAIN.test(cut)) {
		return `"${visible(cut.replaceAll("\\", "\\\\").replaceAll('"', '\\"'))}"${rest}`;
	}
	return `${visible(cut)}${rest}`;
}

/** Values in a sentence, not too many of them. */
export function quoteAll(values: readonly unknown[], limit = 8): string {
	if (values.length === 0) return "nothing";
	const shown = values.slice(0, limit).map((value) => quote(value));
	const more = values.length - shown.length;
	return shown.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** Parts of a sentence, not too many of them. */
export function join(parts: readonly string[], limit = 4): string {
	const more = parts.length - limit;
	return parts.slice(0, limit).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** `1 event`, `2 events`. */
export function counted(count: number, what: string): string {
	return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** JSON in one line that a terminal shows as it is. */
export function jsonLine(value: unknown): string {
	return JSON.stringify(value).replace(UNSEEN, (character) => [...character].map(inUnits).join(""));
}

function inUnits(character: string): string {
	let units = "";
	for (let i = 0; i < character.length; i++) {
		units += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
	}
	return units;
}
