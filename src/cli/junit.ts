/** What became of a test. */
export interface JunitCase {
	readonly name: string;
	/** Seconds. */
	readonly time: number;
	/** What was wrong: a line, and the whole. */
	readonly failure?: { readonly message: string; readonly text: string };
	readonly skipped?: boolean;
}

export interface JunitSuite {
	readonly name: string;
	readonly cases: readonly JunitCase[];
}

/** JUnit's XML, as CI systems read it. */
export function junitOf(suites: readonly JunitSuite[]): string {
	const all = suites.flatMap(({ cases }) => cases);
	const body = suites.map(
		({ name, cases }) =>
			`\t<testsuite name="${escaped(name)}"${countsOf(cases)}>\n${cases.map((one) => caseOf(name, one)).join("")}\t</testsuite>\n`,
	);
	return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="mcp-resume-guard"${countsOf(all)}>\n${body.join("")}</testsuites>\n`;
}

function countsOf(cases: readonly JunitCase[]): string {
	const failures = cases.filter(({ failure }) => failure !== undefined).length;
	const skipped = cases.filter((one) => one.skipped).length;
	const time = cases.reduce((sum, one) => sum + one.time, 0);
	return ` tests="${cases.length}" failures="${failures}" errors="0" skipped="${skipped}" time="${time.toFixed(3)}"`;
}

function caseOf(suite: string, { name, time, failure, skipped }: JunitCase): string {
	const start = `\t\t<testcase name="${escaped(name)}" classname="${escaped(suite)}" time="${time.toFixed(3)}"`;
	if (skipped) return `${start}><skipped/></testcase>\n`;
	if (failure === undefined) return `${start}/>\n`;
	const { message, text } = failure;
	return `${start}>\n\t\t\t<failure message="${escaped(message)}" type="AssertionError">${inText(text)}</failure>\n\t\t</testcase>\n`;
}

// XML 1.0 section 2.2: these cannot be in a document at all, not even as references.
const IMPOSSIBLE = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

const ENTITIES: Readonly<Record<string, string>> = {
	"&": "&amp;",
	"<": "&lt;",
	">": "&gt;",
	'"': "&quot;",
	// A parser would make line feeds of them, and in an attribute spaces of all three.
	"\r": "&#13;",
	"\n": "&#10;",
	"\t": "&#9;",
};

function escaped(text: string): string {
	return replaced(text, /[&<>"\r\n\t]/g);
}

function inText(text: string): string {
	return replaced(text, /[&<>\r]/g);
}

function replaced(text: string, special: RegExp): string {
	return text
		.replace(IMPOSSIBLE, "\u{fffd}")
		.replace(special, (character) => ENTITIES[character] ?? character);
}
