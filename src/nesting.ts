/** How many objects and arrays a file may have within each other: no contract of this package comes near. */
const DEEPEST = 100;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `[` and `]` are these without one bit. */
const [OPENING, CLOSING] = [0x7b, 0x7d];

/**
 * Parses JSON that somebody has written. What is nested deeper is not looked at: it would take memory, time, and the
 * stack of whoever walks it (RFC 8259 section 9 allows for that).
 *
 * @throws {SyntaxError}
 */
export function parseJson(text: string): unknown {
	if (isDeep(text)) throw new SyntaxError(`nested deeper than ${DEEPEST}`);
	return JSON.parse(text);
}

// Of text that is no JSON it may say anything.
function isDeep(text: string): boolean {
	let depth = 0;
	let isInString = false;
	for (let at = 0; at < text.length; at++) {
		const unit = text.charCodeAt(at);
		if (unit === BACKSLASH) at += 1;
		else if (unit === QUOTE) isInString = !isInString;
		else if (isInString) continue;
		else if ((unit | 0x20) === OPENING) depth += 1;
		else if ((unit | 0x20) === CLOSING) depth -= 1;
		if (depth > DEEPEST) return true;
	}
	return false;
}
