// Controls, format characters such as the bidirectional ones, and line separators.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Text that moves no cursor, hides nothing and stays on its line. */
export function visible(text: string): string {
	return text.replace(UNSEEN, (character) => {
		let units = "";
		for (let i = 0; i < character.length; i++) {
			units += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
		}
		return units;
	});
}

/** JSON in lines of at most this width: what fits stays in one line, what does not is broken. */
export function jsonLines(value: unknown, width: number, name?: string): string[] {
	const before = name === undefined ? "" : `${visible(JSON.stringify(name))}: `;
	const line = before + compact(value);
	if (line.length <= width || typeof value !== "object" || value === null) return wrap(line, width);
	const isList = Array.isArray(value);
	const members: [string | undefined, unknown][] = isList
		? value.map((element) => [undefined, element])
		: Object.entries(value);
	const inner = members.flatMap(([member, element], index) => {
		const lines = jsonLines(element, Math.max(width - 3, MINIMUM), member);
		const last = lines.length - 1;
		const end = index < members.length - 1 ? "," : "";
		return lines.map((text, at) => `  ${text}${at === last ? end : ""}`);
	});
	return [...wrap(`${before}${isList ? "[" : "{"}`, width), ...inner, isList ? "]" : "}"];
}

const MINIMUM = 12;

function compact(value: unknown): string {
	if (Array.isArray(value)) return `[${value.map(compact).join(", ")}]`;
	if (typeof value !== "object" || value === null) return visible(JSON.stringify(value) ?? "");
	const members = Object.entries(value).map(
		([name, member]) => `${visible(JSON.stringify(name))}: ${compact(member)}`,
	);
	return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

function wrap(line: string, width: number): string[] {
	const lines: string[] = [];
	for (let start = 0; start < line.length; start += width) lines.push(line.slice(start, start + width));
	return lines.length === 0 ? [""] : lines;
}
