import type { Opa } from "./opa.ts";
import { runOpa } from "./opa.ts";
import { effectiveRules, inStage, type PolicyFolder, RULES, regoTests } from "./policy-folder.ts";

/** What became of a Rego test. */
export interface RegoResult {
	/** `<package>.<test>`. */
	readonly name: string;
	readonly file: string;
	readonly ok: boolean;
	readonly skipped: boolean;
	/** Seconds. */
	readonly time: number;
	/** Why it could not be evaluated, or what it printed. */
	readonly message?: string;
}

/** Which lines of a folder's own Rego its tests have reached. */
export interface RegoCoverage {
	readonly file: string;
	/** Per cent of its lines. */
	readonly coverage: number;
	/** Rows, from 1. */
	readonly not_covered: readonly number[];
}

export interface RegoRun {
	readonly results: readonly RegoResult[];
	readonly coverage: readonly RegoCoverage[];
	/** Why none of them could be run. */
	readonly problem?: string;
}

/**
 * Runs the folder's own Rego tests, on all rules that decide and with the folder's data.
 *
 * @param isMeasured whether to measure coverage, which takes another run
 */
export async function runRegoTests(folder: PolicyFolder, opa: Opa, isMeasured: boolean): Promise<RegoRun> {
	const files = [...(await effectiveRules(folder)), ...regoTests(folder), folder.data];
	const own = new Set(folder.regoFiles.map(({ path }) => path));
	return inStage(files, async (stage) => {
		const args = ["test", "--timeout", "60s", RULES];
		const { stdout, stderr } = await runOpa(opa, [...args, "--format", "json"], stage);
		const reported = read<readonly Reported[] | null>(stdout);
		if (reported === undefined) return { results: [], coverage: [], problem: stderr || stdout };
		const results = (reported ?? []).map(resultOf);
		if (results.length === 0) return { results, coverage: [], problem: "no test was found in them" };
		if (!isMeasured || results.some(({ ok }) => !ok)) return { results, coverage: [] };
		const measured = read<Measured>((await runOpa(opa, [...args, "--coverage"], stage)).stdout);
		return { results, coverage: coverageOf(measured, own) };
	});
}

interface Reported {
	readonly location?: { readonly file?: string };
	readonly package: string;
	readonly name: string;
	readonly fail?: boolean;
	readonly skip?: boolean;
	readonly error?: unknown;
	/** Nanoseconds. */
	readonly duration?: number;
	/** Base64. */
	readonly output?: string;
}

function resultOf(reported: Reported): RegoResult {
	const { location, name, fail = false, skip = false, error, duration = 0, output } = reported;
	const printed = output === undefined ? undefined : Buffer.from(output, "base64").toString();
	const message = error === undefined ? printed : messageOf(error);
	return {
		name: `${reported.package.replace(/^data\./, "")}.${name}`,
		file: below(location?.file ?? ""),
		ok: !fail && error === undefined,
		skipped: skip,
		time: duration / 1e9,
		...(message !== undefined && { message }),
	};
}

function messageOf(error: unknown): string {
	const { message } = (error ?? {}) as { message?: unknown };
	return typeof message === "string" ? message : JSON.stringify(error);
}

interface Measured {
	readonly files?: Readonly<
		Record<
			string,
			{
				readonly coverage?: number;
				readonly not_covered?: readonly { readonly start: { readonly row: number } }[];
			}
		>
	>;
}

function coverageOf(measured: Measured | undefined, own: ReadonlySet<string>): RegoCoverage[] {
	return Object.entries(measured?.files ?? {}).flatMap(([path, { coverage = 0, not_covered = [] }]) => {
		const file = below(path);
		const isEmpty = coverage === 0 && not_covered.length === 0;
		if (!own.has(file) || file.endsWith("_test.rego") || isEmpty) return [];
		return [{ file, coverage, not_covered: [...new Set(not_covered.map(({ start }) => start.row))] }];
	});
}

function below(path: string): string {
	return path.startsWith(`${RULES}/`) ? path.slice(RULES.length + 1) : path;
}

function read<T>(text: string): T | undefined {
	try {
		return JSON.parse(text) as T;
	} catch {
		return undefined;
	}
}
