import { ResumeGuardError } from "../errors.ts";
import { parseJson } from "../nesting.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** The string tokens and the number tokens of JSON text. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Reads a JSON document of a bundle.
 *
 * @param path for the message
 * @throws {ResumeGuardError} `bundle_invalid`
 */
export function readJson(path: string, content: Uint8Array): unknown {
	try {
		return parseJson(utf8.decode(content));
	} catch {
		// Without the cause, which quotes the text.
		throw notJson(path);
	}
}

/**
 * A JSON document as OPA hashes it: members by their names, no white space, each number as it is written, strings as Go
 * writes them (OPA, "Bundle Signing": structured documents).
 *
 * @throws {ResumeGuardError} `bundle_invalid`
 */
export function canonical(path: string, content: Uint8Array): string {
	readJson(path, content);
	try {
		// JSON.parse would lose how a number is written (1.0, 1e2, 64 bits and more): so numbers become strings, marked.
		const marked = utf8
			.decode(content)
			.replace(TOKEN, (token) => (token.startsWith('"') ? `"s${token.slice(1)}` : `"n${token}"`));
		return write(JSON.parse(marked));
	} catch {
		throw notJson(path);
	}
}

function write(value: unknown): string {
	if (typeof value === "string") return value.startsWith("n") ? value.slice(1) : text(value);
	if (typeof value !== "object" || value === null) return JSON.stringify(value);
	if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
	const members = Object.entries(value).sort(([a], [b]) => compare(a, b));
	return `{${members.map(([name, member]) => `${text(name)}:${write(member)}`).join(",")}}`;
}

function text(marked: string): string {
	const value = marked.slice(1);
	// Go replaces a lone surrogate, so that two texts would have one hash.
	if (!value.isWellFormed()) throw new Error("a lone surrogate");
	return JSON.stringify(value).replace(
		/[\u2028\u2029]/g,
		(separator) => `\\u${separator.charCodeAt(0).toString(16)}`,
	);
}

/** By code points, as Go compares UTF-8. */
function compare(a: string, b: string): number {
	for (let i = 0; i < a.length && i < b.length; ) {
		const [one = 0, other = 0] = [a.codePointAt(i), b.codePointAt(i)];
		if (one !== other) return one - other;
		i += one > 0xffff ? 2 : 1;
	}
	return a.length - b.length;
}

function notJson(path: string): ResumeGuardError {
	return new ResumeGuardError(
		"bundle_invalid",
		`the bundle cannot be read: ${path} is not JSON, or nested too deep`,
	);
}
