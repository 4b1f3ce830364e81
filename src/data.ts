import { ResumeGuardError } from "./errors.ts";
import type { PolicyData } from "./generated/types.ts";
import { type ValidationError, validateData } from "./generated/validators.js";
import { parseJson } from "./nesting.ts";

/** Policy data as `schemas/data.json` has it, with every default in its place. */
export type CompletePolicyData = Required<PolicyData>;

/**
 * Reads, validates and completes policy data.
 *
 * @param given the data, or the path of a JSON file like `policies/mcp/data.json`
 * @throws {ResumeGuardError} `data_invalid`, whose message has the JSON Pointer to the wrong place; `file_unreadable`
 */
export async function readData(given: PolicyData | string): Promise<CompletePolicyData> {
	if (typeof given !== "string") return completeData(given);
	return completeData(parseData(given, await readDataText(given)), given);
}

/**
 * Validates and completes policy data.
 *
 * @param given whatever was found where data should be; it stays as it is
 * @param path of the file, for the message
 * @throws {ResumeGuardError} `data_invalid`, whose message has the JSON Pointer to the wrong place
 */
export function completeData(given: unknown, path?: string): CompletePolicyData {
	const invalid = (what: string) =>
		new ResumeGuardError("data_invalid", `policy data${path === undefined ? "" : ` ${path}`}: ${what}`);
	const data = copyOf(given);
	if (!validateData(data)) throw invalid(describe(validateData.errors?.[0]));
	const completed = data as CompletePolicyData;
	const repeated = repeatedAlias(completed.aliases);
	if (repeated !== undefined) throw invalid(`/aliases: ${repeated} is in two sets`);
	const strange = strangeIn(completed);
	if (strange !== undefined) throw invalid(strange);
	return completed;
}

function copyOf(data: unknown): unknown {
	try {
		return structuredClone(data);
	} catch (cause) {
		throw new ResumeGuardError("data_invalid", "policy data: not JSON", { cause });
	}
}

/** @throws {ResumeGuardError} `file_unreadable` */
export async function readDataText(path: string): Promise<string> {
	const { readFile } = await import("node:fs/promises");
	try {
		return await readFile(path, "utf8");
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `the policy data ${path} cannot be read`, { cause });
	}
}

/**
 * @param path for the message
 * @throws {ResumeGuardError} `data_invalid`
 */
export function parseData(path: string, text: string): unknown {
	try {
		return parseJson(text);
	} catch (cause) {
		throw new ResumeGuardError("data_invalid", `the policy data ${path} is not JSON`, { cause });
	}
}

/** The place and the rule that was broken, in one line. */
export function describe(error: ValidationError | undefined): string {
	if (error === undefined) return "invalid";
	const { instancePath, message, params } = error;
	const name = params.additionalProperty ?? params.allowedValues;
	return `${instancePath || "/"}: ${message}${name === undefined ? "" : ` (${String(name)})`}`;
}

function repeatedAlias(sets: readonly (readonly string[])[]): string | undefined {
	const seen = new Set<string>();
	for (const set of sets) {
		for (const name of new Set(set)) {
			if (seen.has(name)) return name;
			seen.add(name);
		}
	}
	return undefined;
}

// What a schema does not see: text that is none, and what JSON would have as something else.
function strangeIn(value: unknown, pointer = ""): string | undefined {
	const surrogate = `${pointer || "/"}: a lone surrogate`;
	if (typeof value === "string") return value.isWellFormed() ? undefined : surrogate;
	if (typeof value !== "object" || value === null) return undefined;
	if (!isPlain(value)) return `${pointer}: not JSON`;
	for (const [key, member] of Object.entries(value)) {
		const found = key.isWellFormed() ? strangeIn(member, `${pointer}/${key}`) : surrogate;
		if (found !== undefined) return found;
	}
	return undefined;
}

// To the schema a Map is an object without members, and a list has its elements only.
function isPlain(value: object): boolean {
	if (Array.isArray(value)) return Object.keys(value).length === value.length;
	return Object.prototype.toString.call(value) === "[object Object]";
}
