import { AssertionError } from "node:assert";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { activate, type BundleRules } from "../../src/bundle/activate.ts";
import { compose } from "../../src/bundle/compose.ts";
import { SIGNATURES } from "../../src/bundle/digest.ts";
import { createFloor } from "../../src/bundle/floor.ts";
import { type BundleVerification, readOptions } from "../../src/bundle/options.ts";
import { createResumeGuard, type PolicyData, ResumeGuardError } from "../../src/index.ts";
import { type Compile, createCompiler, packagedPolicy } from "../../src/policy.ts";
import { testTables } from "../../src/testing/index.ts";
import { damaged, json, setJson } from "../bundle/support.ts";
import { temporaryFolder } from "../cli/folder.ts";
import { moments, search, server } from "../cli/questions.ts";
import { handmadePolicy } from "../handmade.ts";
import { mutatedArchives } from "./archives.ts";
import { mutatedJson } from "./json.ts";
import { options } from "./options.ts";

// What operators and security teams feed in: policy data, decision tables, bundles, Wasm.

const shipped = JSON.parse(readFileSync("policies/mcp/data.json", "utf8")) as PolicyData;
const data: PolicyData = {
	...shipped,
	profile: "per-tool",
	identity_claims: ["org_id"],
	aliases: [[server, "mcp://srv"]],
	status: { tool_unmapped: 404 },
};
const { moment, ...facts } = moments.call;
const table = {
	title: "calls",
	data: { clock_skew: 10 },
	facts: { moment, ...facts },
	cases: [
		{ name: "searches", facts: { tool: "search" }, want: { outcome: "proceed", drift: [] } },
		{
			name: "has a narrow token",
			data: { coverage: null },
			facts: { presented: { aud: [search] }, tool: "fetch" },
			want: { code: "audience_not_covered" },
		},
	],
};

describe("policy data, whatever is in it, is data by its schema or is refused as none", () => {
	const bySchema = new Ajv2020({ allowUnionTypes: true }).compile(
		JSON.parse(readFileSync("schemas/data.json", "utf8")),
	);
	const beyondSchema = /: a lone surrogate$| is in two sets$|is not JSON$/;

	test.each<[string, (text: string, path: string) => PolicyData | string]>([
		["as an object", (text) => JSON.parse(text) as PolicyData],
		[
			"as a file",
			(text, path) => {
				writeFileSync(path, text);
				return path;
			},
		],
	])(
		"%s",
		async (_, given) => {
			const path = join(temporaryFolder(), "data.json");
			await fc.assert(
				fc.asyncProperty(mutatedJson(data), async (text) => {
					const value = parsed(text);
					// What is no object at all is misuse of the option.
					const source = value === undefined ? pathOf(text, path) : given(text, path);
					if (source !== path && (typeof source !== "object" || source === null)) return;
					const faults: unknown[] = [];
					const onFault = (fault: unknown) => faults.push(fault);
					const outcome = await settled(createResumeGuard({ data: source, onFault }));
					if (outcome instanceof ResumeGuardError) {
						expect(outcome.code).toBe("data_invalid");
						if (value !== undefined && isShallow(value) && bySchema(value)) {
							expect(outcome.message).toMatch(beyondSchema);
						}
						return;
					}
					expect([value !== undefined && bySchema(value), text]).toEqual([true, text]);
					for (const question of [moments.session, moments.call, moments.resume, moments.delivery]) {
						const { moment, ...asked } = question;
						expect(outcome[moment as "call"](asked as never)).toHaveProperty("outcome");
					}
					expect(faults).toEqual([]);
				}),
				options,
			);

			function pathOf(text: string, at: string): string {
				writeFileSync(at, text);
				return at;
			}
		},
		60_000,
	);

	test("a file that is nested as deep as it is long, at once", async () => {
		const path = join(temporaryFolder(), "data.json");
		for (const [open, close] of ["[]", '{"a":}'].map(
			(pair) => [pair.slice(0, -1), pair.slice(-1)] as const,
		)) {
			const count = 8_000_000 / open.length;
			writeFileSync(path, open.repeat(count) + close.repeat(count));
			const before = processorTime();
			await expect(createResumeGuard({ data: path })).rejects.toMatchObject({ code: "data_invalid" });
			expect(processorTime() - before).toBeLessThan(2_000);
		}
	});
});

test("a decision table, whatever is in it, is refused as none or has cases that pass or fail", async () => {
	const path = join(temporaryFolder(), "table.json");
	await fc.assert(
		fc.asyncProperty(mutatedJson(table), async (text) => {
			writeFileSync(path, text);
			const cases: (() => Promise<void>)[] = [];
			const register = (_: string, run: () => Promise<void>) => cases.push(run);
			const outcome = await settled(testTables(register, { tables: path, data: shipped, coverage: true }));
			if (outcome instanceof ResumeGuardError) {
				expect(["table_invalid", "data_invalid"]).toContain(outcome.code);
				return;
			}
			expect(cases.length).toBeGreaterThan(1);
			for (const run of cases) {
				const failure = await run().catch((error: unknown) => error);
				if (failure !== undefined) expect(failure).toBeInstanceOf(AssertionError);
			}
		}),
		options,
	);
}, 120_000);

describe("a bundle", () => {
	const parts = {
		data,
		wasm: packagedPolicy(),
		rules: [{ path: "policies/mcp/custom/custom.rego", text: "package mcp.custom\n" }],
		tests: { "tools.json": table },
		revision: "r1",
		sequence: 3,
	};
	// HMAC, as it is the same with each run: a seed plays the very bundle again.
	const signing = { key: "a secret of thirty-two bytes or more", algorithm: "HS256" };
	const keys = { default: signing };
	let unsigned: Uint8Array;
	let signed: Uint8Array;
	beforeAll(async () => {
		[unsigned, signed] = await Promise.all([compose(parts), compose({ ...parts, signing })]);
	});

	const compile = createCompiler();
	const isShipped = (bytes: Uint8Array) => Buffer.compare(bytes, parts.wasm) === 0;

	async function load(archive: Uint8Array, verification?: BundleVerification, by: Compile = compile) {
		const settings = await readOptions({ source: "x", ...(verification && { verification }) });
		return settled(activate(archive, settings, createFloor(undefined), by));
	}

	function expectRefused(error: ResumeGuardError): void {
		expect(error.code).toMatch(/^(?:bundle_|policy_invalid$|data_invalid$|table_invalid$)/);
		expect(error.code).not.toBe("bundle_unavailable");
	}

	test("that is signed is what was signed, or is refused, whatever became of it", async () => {
		// Nothing else may come so far.
		const onlyShipped: Compile = async (bytes) => {
			if (!isShipped(bytes)) throw new Error("Wasm that was not signed");
			return compile(bytes);
		};
		const contentOf = ({ data, revision, sequence }: BundleRules) => ({ data, revision, sequence });
		const original = await load(signed, { keys }, onlyShipped);
		if (original instanceof ResumeGuardError) throw original;
		await fc.assert(
			fc.asyncProperty(await mutatedArchives(signed), async (archive) => {
				const outcome = await load(await archive, { keys }, onlyShipped);
				if (outcome instanceof ResumeGuardError) expectRefused(outcome);
				else expect(contentOf(outcome)).toEqual(contentOf(original));
			}),
			options,
		);
	}, 120_000);

	test("that is not signed is taken or refused, whatever became of it", async () => {
		// Wasm that is hostile may run for ever (SECURITY.md): this one is not run.
		const noHostile: Compile = async (bytes) => {
			if (!isShipped(bytes)) throw new ResumeGuardError("policy_invalid", "another Wasm");
			return compile(bytes);
		};
		await fc.assert(
			fc.asyncProperty(await mutatedArchives(unsigned), async (archive) => {
				const outcome = await load(await archive, undefined, noHostile);
				if (outcome instanceof ResumeGuardError) expectRefused(outcome);
			}),
			options,
		);
	}, 120_000);

	const deep = (depth: number, inner: string) => `${'{"a":'.repeat(depth)}${inner}${"}".repeat(depth)}`;
	const put = (files: Map<string, Uint8Array>, path: string, text: string) =>
		files.set(path, Buffer.from(text));
	const withTest = (files: Map<string, Uint8Array>, test: string) => {
		const metadata = { mcp_resume_guard: { tests: { t: "TEST" } } };
		const manifest = JSON.stringify({ ...json(files, ".manifest"), metadata });
		put(
			files,
			".manifest",
			manifest.replace('"TEST"', () => test),
		);
	};

	test.each<[string, string, (files: Map<string, Uint8Array>) => void]>([
		[
			"data of two files, both deep",
			"bundle_invalid",
			(files) => {
				put(files, "data.json", `{"mcp":{"tools":${deep(100_000, '{"x":1}')}}}`);
				put(files, "mcp/tools/data.json", deep(100_000, '{"y":1}'));
			},
		],
		[
			"a table with deep data",
			"bundle_invalid",
			(files) => withTest(files, `{"title":"t","data":${deep(100_000, "1")},"cases":[]}`),
		],
		["a deep list as data", "bundle_invalid", (files) => put(files, "data.json", "[".repeat(30_000_000))],
		[
			"a file in many folders, and a root as deep",
			"bundle_invalid",
			(files) => {
				put(files, `${"x/".repeat(20_000)}data.json`, "1");
				setJson(files, ".manifest", { ...json(files, ".manifest"), roots: ["mcp", "x/".repeat(20_001)] });
			},
		],
		[
			"a root of many segments",
			"bundle_invalid",
			(files) =>
				setJson(files, ".manifest", { ...json(files, ".manifest"), roots: ["mcp", "x/".repeat(5_000_000)] }),
		],
		[
			"many roots",
			"bundle_invalid",
			(files) => {
				const roots = ["mcp", ...Array.from({ length: 20_000 }, (_, index) => `r${index}`)];
				setJson(files, ".manifest", { ...json(files, ".manifest"), roots });
			},
		],
		[
			"as many roots as there may be, two of which overlap",
			"bundle_roots_invalid",
			(files) => {
				const roots = ["mcp", ...Array.from({ length: 1_022 }, (_, index) => `${"r/".repeat(400)}${index}`)];
				setJson(files, ".manifest", { ...json(files, ".manifest"), roots: [...roots, `${roots.at(-1)}/x`] });
			},
		],
		[
			"many entrypoints",
			"bundle_invalid",
			(files) => {
				const wasm = Array.from({ length: 100_000 }, (_, index) => ({
					entrypoint: `mcp/${index}`,
					module: "/x",
				}));
				setJson(files, ".manifest", { ...json(files, ".manifest"), wasm });
			},
		],
	])("with %s is refused at once", async (_, code, change) => {
		const archive = await damaged(unsigned, change);
		const before = processorTime();
		expect(await load(archive)).toMatchObject({ name: "ResumeGuardError", code });
		expect(processorTime() - before).toBeLessThan(3_000);
	});

	test("whose signature is deep is refused at once", async () => {
		const payload = Buffer.from("[".repeat(10_000_000)).toString("base64url");
		const archive = await damaged(signed, (files) =>
			setJson(files, SIGNATURES, { signatures: [`e30.${payload}.x`] }),
		);
		expect(await load(archive, { keys })).toMatchObject({ code: "bundle_signature_invalid" });
	});
});

describe("Wasm that has not what an evaluation calls is refused with what it lacks", () => {
	const names = [
		"builtins",
		"entrypoints",
		"opa_eval",
		"opa_heap_ptr_get",
		"opa_heap_ptr_set",
		"opa_json_dump",
		"opa_json_parse",
		"opa_malloc",
		"opa_wasm_abi_version",
		"opa_wasm_abi_minor_version",
	];

	test.each(names)("%s", async (name) => {
		const policy = renamed(handmadePolicy(), name, name.toUpperCase());
		await expect(createResumeGuard({ data: shipped, policy })).rejects.toMatchObject({
			code: "policy_invalid",
			message: `the policy cannot be loaded: it does not export ${name}`,
		});
	});

	test("a global by the name of a function", async () => {
		const one = renamed(handmadePolicy(), "opa_wasm_abi_version", "opa_wasm_abi_versiox");
		const policy = renamed(
			renamed(one, "opa_json_parse", "OPA_JSON_PARSE"),
			"opa_heap_ptr_get",
			"OPA_HEAP_PTR_GET",
		);
		await expect(createResumeGuard({ data: shipped, policy })).rejects.toMatchObject({
			code: "policy_invalid",
			message: expect.stringMatching(/export opa_wasm_abi_version, opa_heap_ptr_get, opa_json_parse$/),
		});
	});

	test("and so is what fails at its data", async () => {
		// The function that is called before the data is set is the one that traps.
		const policy = handmadePolicy({ fails: "trap" });
		const at = Buffer.from(policy).indexOf("opa_heap_ptr_set") + "opa_heap_ptr_set".length + 1;
		const evaluate = Buffer.from(policy).indexOf("opa_eval") + "opa_eval".length + 1;
		policy[at] = policy[evaluate] ?? 0;
		await expect(createResumeGuard({ data: shipped, policy })).rejects.toMatchObject({
			code: "policy_invalid",
			message: expect.stringMatching(/^the policy cannot take its data: unreachable/),
		});
	});
});

function renamed(wasm: Uint8Array<ArrayBuffer>, name: string, other: string): Uint8Array<ArrayBuffer> {
	const bytes = Uint8Array.from(wasm);
	// As long as the other, after its length.
	const at = Buffer.from(wasm).indexOf(String.fromCharCode(name.length) + name, 0, "latin1") + 1;
	bytes.set(Buffer.from(other), at);
	return bytes;
}

/** What came of it; of the errors of this package which, and nothing else is one. */
async function settled<T>(promise: Promise<T>): Promise<T | ResumeGuardError> {
	try {
		return await promise;
	} catch (error) {
		if (error instanceof ResumeGuardError) return error;
		throw error;
	}
}

/** Milliseconds: what else runs on this machine takes none of it. */
function processorTime(): number {
	const { user, system } = process.cpuUsage();
	return (user + system) / 1_000;
}

function parsed(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

function isShallow(value: unknown, left = 100): boolean {
	if (typeof value !== "object" || value === null) return true;
	return left > 0 && Object.values(value).every((member) => isShallow(member, left - 1));
}
