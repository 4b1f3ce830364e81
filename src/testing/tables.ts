import { AssertionError } from "node:assert";
import { promises as fs } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readData } from "../data.ts";
import { ResumeGuardError } from "../errors.ts";
import type { PolicyData } from "../generated/types.ts";
import { parseJson } from "../nesting.ts";
import type { PolicySource } from "../policy.ts";
import { type NamedTable, readCases } from "../tables.ts";
import { compare } from "./compare.ts";
import { type CodeCoverageOptions, coverageOfCodes } from "./coverage.ts";
import { createRunner, type RunResult } from "./run.ts";

/** `test` or `it` of vitest, `test` or `it` of `node:test`: whatever takes a name and what to run. */
export type TestFunction = (name: string, run: () => Promise<void>) => unknown;

export interface TestTablesOptions {
	/** Decision tables: files, or folders of `.json` files. Paths are relative to the working directory. */
	readonly tables: string | URL | readonly (string | URL)[];
	/** The policy data that the tables' own data is merged over, or the path of a file. */
	readonly data: PolicyData | string | URL;
	/** Wasm that OPA built: bytes, a module or a path. Default: the policy in this package. */
	readonly policy?: PolicySource | URL;
	/** One more test: that every code of every moment is reached by some case. Default: none. */
	readonly coverage?: boolean | CodeCoverageOptions;
}

/**
 * Registers a test for each case of decision tables:
 *
 *     await testTables(test, { tables: "policy/tests", data: "policy/mcp/data.json" });
 *
 * @throws {TypeError} for an option that is wrong
 * @throws {ResumeGuardError} `table_invalid`: a table is not good, or there is no case at all; `data_invalid`,
 *   `policy_invalid`, `file_unreadable`
 */
export async function testTables(test: TestFunction, options: TestTablesOptions): Promise<void> {
	assertOptions(test, options);
	const { tables, data, policy, coverage = false } = options;
	const baseline = await readData(data instanceof URL ? fileURLToPath(data) : data);
	const cases = await readCases(await readTables([tables].flat()), baseline);
	const run = createRunner(await compiled(policy));
	const running = new Map<string, Promise<RunResult>>();
	const resultOf = (one: (typeof cases)[number]) => {
		const result = running.get(one.name) ?? run(one);
		running.set(one.name, result);
		return result;
	};

	for (const one of cases) {
		test(one.name, async () => {
			const result = await resultOf(one);
			if (!result.ok) throw failureOf(result);
		});
	}
	if (coverage === false) return;
	test("every decision code is reached by a case", async () => {
		// All of them, also when a filter leaves some of the tests out.
		const results: RunResult[] = [];
		for (const one of cases) results.push(await resultOf(one));
		const { missed } = coverageOfCodes(results, coverage === true ? {} : coverage);
		if (missed.length === 0) return;
		const message = `reached by no case:\n${missed.map((name) => `  ${name}\n`).join("")}`;
		throw new AssertionError({ message, actual: missed, expected: [], operator: "deepStrictEqual" });
	});
}

function failureOf(result: RunResult): AssertionError {
	const members: Readonly<Record<string, unknown>> = { ...result.got };
	const actual = Object.fromEntries(
		[...Object.keys(result.want), ...result.differs].map((name) => [name, members[name]]),
	);
	return new AssertionError({
		message: `${result.name}\n${compare(result, { fault: result.fault })}`,
		actual,
		expected: result.want,
		operator: "deepStrictEqual",
	});
}

interface TableFile {
	readonly name: string;
	readonly path: string;
}

async function readTables(places: readonly (string | URL)[]): Promise<NamedTable[]> {
	const found = await Promise.all(
		places.map((place) => filesAt(place instanceof URL ? fileURLToPath(place) : place)),
	);
	return Promise.all(found.flat().map(readTableFile));
}

/** A file, or what lies below a folder; each is named by its path below that. */
async function filesAt(path: string): Promise<TableFile[]> {
	try {
		if (!(await fs.stat(path)).isDirectory()) return [{ name: basename(path), path }];
		const names = await fs.readdir(path, { recursive: true });
		const tables = names.map((name) => name.replaceAll("\\", "/")).filter((name) => name.endsWith(".json"));
		return tables.sort().map((name) => ({ name, path: join(path, name) }));
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `the tables ${path} cannot be read`, { cause });
	}
}

async function readTableFile({ name, path }: TableFile): Promise<NamedTable> {
	let text: string;
	try {
		text = await fs.readFile(path, "utf8");
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `the table ${path} cannot be read`, { cause });
	}
	try {
		return { name, document: parseJson(text) };
	} catch (cause) {
		throw new ResumeGuardError("table_invalid", `the table ${path} is not JSON`, { cause });
	}
}

// Once for all guards, as it takes most of the time.
async function compiled(policy: PolicySource | URL | undefined): Promise<PolicySource | undefined> {
	if (policy === undefined || policy instanceof WebAssembly.Module) return policy;
	const path = policy instanceof URL ? fileURLToPath(policy) : policy;
	try {
		const bytes = typeof path === "string" ? await fs.readFile(path) : path;
		return await WebAssembly.compile(bytes as BufferSource);
	} catch (cause) {
		const code = cause instanceof WebAssembly.CompileError ? "policy_invalid" : "file_unreadable";
		throw new ResumeGuardError(code, "the policy cannot be read, or is not WebAssembly", { cause });
	}
}

function assertOptions(test: unknown, options: unknown): void {
	if (typeof test !== "function") throw new TypeError("testTables: the first argument must be a function");
	const { tables, data, policy: _, coverage, ...others } = (options ?? {}) as Record<string, unknown>;
	const [unknown] = Object.keys(others);
	if (unknown !== undefined) throw new TypeError(`testTables: there is no option \`${unknown}\``);
	if (![tables].flat().every((place) => typeof place === "string" || place instanceof URL)) {
		throw new TypeError("testTables: `tables` must be a path, or several");
	}
	if (typeof data !== "string" && (typeof data !== "object" || data === null)) {
		throw new TypeError("testTables: `data` must be policy data or the path of a file");
	}
	if (coverage === undefined || typeof coverage === "boolean") return;
	if (typeof coverage !== "object" || coverage === null) {
		throw new TypeError("testTables: `coverage` must be true, or an object");
	}
	const [odd] = Object.keys(coverage).filter((name) => name !== "except" && name !== "custom");
	if (odd !== undefined) throw new TypeError(`testTables: \`coverage\` has no \`${odd}\``);
	coverageOfCodes([], coverage);
}
