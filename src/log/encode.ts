/**
 * JSON text on one line, whoever reads it: control characters and lone surrogates are escaped by JSON itself; so are,
 * beyond JSON, what some readers take for the end of a line (U+0085, U+2028, U+2029), what a terminal acts on (U+007F to
 * U+009F) and what turns the direction of text (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
 */
export function encodeLine(value: unknown): string {
	return JSON.stringify(value).replace(
		/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
		(character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
	);
}
