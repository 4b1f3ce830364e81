import { type Found, pointer } from "./finding.ts";

// Of text that is JSON: strings, punctuation, and the rest. White space is passed over.
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

interface Open {
	/** Those of an object; an array has none. */
	readonly keys: Set<string> | undefined;
	/** The member or element at hand. */
	at: string | number;
	isKeyNext: boolean;
}

/**
 * The keys that an object has twice (RFC 8259 section 4: what is then read is not foreseeable; here, the last of them).
 *
 * @param text JSON: it has been parsed
 */
export function repeatedKeys(text: string): Found[] {
	const found: Found[] = [];
	const stack: Open[] = [];
	for (const [token] of text.matchAll(TOKEN)) {
		const open = stack.at(-1);
		if (token === "{") stack.push({ keys: new Set(), at: "", isKeyNext: true });
		else if (token === "[") stack.push({ keys: undefined, at: 0, isKeyNext: false });
		else if (token === "}" || token === "]") stack.pop();
		else if (open === undefined) continue;
		else if (token === ",") {
			if (typeof open.at === "number") open.at += 1;
			else open.isKeyNext = true;
		} else if (open.isKeyNext && open.keys !== undefined) {
			// Two spellings may be one key.
			const key: string = JSON.parse(token);
			open.at = key;
			open.isKeyNext = false;
			if (open.keys.has(key)) {
				const message = "the object has this key before: only the last one counts";
				const place = pointer(...stack.map(({ at }) => at));
				found.push({ severity: "error", rule: "key_repeated", pointer: place, message });
			}
			open.keys.add(key);
		}
	}
	return found;
}
