import * as opaWasm from "@open-policy-agent/opa-wasm";
import { ResumeGuardError } from "./errors.ts";
import { evaluateText, type LoadedPolicy } from "./evaluate.ts";
import { policyWasm } from "./generated/policy-wasm.ts";
import type { PolicyData } from "./generated/types.ts";

export type Moment = "session" | "call" | "resume" | "delivery";

export const MOMENTS: readonly Moment[] = ["session", "call", "resume", "delivery"];

/** Where a policy comes from: the bytes of a Wasm that OPA built, a compiled module, or the path of a file. */
export type PolicySource = Uint8Array | ArrayBuffer | WebAssembly.Module | string;

/** A policy with its data. */
export interface Policy {
	/**
	 * What the entrypoint `mcp/<moment>/decision` answers; `undefined` if it is undefined.
	 *
	 * @param facts JSON text
	 * @throws whatever the Wasm did: a trap, an abort of OPA's runtime, input that it cannot read. The next
	 *   evaluation has a new instance.
	 */
	evaluate(moment: Moment, facts: string): unknown;
	/** The next evaluation has a new instance: this one's answer was not sound. */
	replace(): void;
}

// At run time the module has all of it on its default export, which its types leave out.
const { default: opa } = opaWasm as unknown as { default: typeof opaWasm };

type Instance = ReturnType<typeof opa.loadPolicySync> &
	LoadedPolicy & { readonly minorVersion: number; readonly entrypoints: Readonly<Record<string, number>> };

// Wasm memory never shrinks: an instance that has grown past the budget is replaced.
const PAGE = 64 * 1024;
const BUDGET = (64 * 1024 * 1024) / PAGE;
const MAXIMUM = (256 * 1024 * 1024) / PAGE;

/**
 * Loads a policy and sets its data.
 *
 * @param source `undefined`: the policy that comes with this package
 * @throws {ResumeGuardError} `policy_invalid` if it is not Wasm of OPA's ABI 1 with an entrypoint for each moment;
 *   `file_unreadable`
 */
export async function loadPolicy(source: PolicySource | undefined, data: PolicyData): Promise<Policy> {
	const module = source === undefined ? await compilePackaged() : await compile(source);
	const { evaluate, replace } = createEvaluator(module, MOMENTS.map(entrypoint), { mcp: data });
	return { evaluate: (moment, facts) => evaluate(entrypoint(moment), facts), replace };
}

/**
 * Loads one rule of any other Wasm that OPA built, with its data.
 *
 * @param name of the entrypoint, `system/log/mask` for example
 * @returns a function from JSON text to what the rule answers; `undefined` if it is undefined. It throws as
 *   {@link Policy.evaluate} does
 * @throws {ResumeGuardError} `policy_invalid`, `file_unreadable`
 */
export async function loadEntrypoint(
	source: PolicySource,
	name: string,
	data: object = {},
): Promise<(input: string) => unknown> {
	const { evaluate } = createEvaluator(await compile(source), [name], data);
	return (input) => evaluate(name, input);
}

interface Evaluator {
	evaluate(entrypoint: string, input: string): unknown;
	replace(): void;
}

function createEvaluator(
	module: WebAssembly.Module,
	entrypoints: readonly string[],
	data: object,
): Evaluator {
	let instance: Instance | undefined = instantiate(module, entrypoints, data);

	return {
		evaluate(entrypoint, input) {
			const current = instance ?? instantiate(module, entrypoints, data);
			// Until it has answered, it is not known to be sound.
			instance = undefined;
			const results = evaluateText(current, current.entrypoints[entrypoint] ?? -1, input);
			if (current.mem.buffer.byteLength <= BUDGET * PAGE) instance = current;
			return resultOf(results);
		},
		replace() {
			instance = undefined;
		},
	};
}

// opa-wasm answers with a set of results: empty where the entrypoint is undefined.
function resultOf(results: unknown): unknown {
	if (!Array.isArray(results) || results.length !== 1) return undefined;
	const [first]: { result?: unknown }[] = results;
	return first?.result;
}

function entrypoint(moment: Moment): string {
	return `mcp/${moment}/decision`;
}

let packaged: Promise<WebAssembly.Module> | undefined;
let packagedBytes: Uint8Array | undefined;

// Once for all guards: it is most of what creating one costs.
function compilePackaged(): Promise<WebAssembly.Module> {
	packaged ??= compile(packagedPolicy());
	return packaged;
}

/** The bytes of the policy that comes with this package: the same ones for all, to be read only. */
export function packagedPolicy(): Uint8Array {
	packagedBytes ??= fromBase64(policyWasm);
	return packagedBytes;
}

/** @throws {ResumeGuardError} `policy_invalid` */
export type Compile = (bytes: Uint8Array) => Promise<WebAssembly.Module>;

/** Compiles, and keeps the last module: most reloads bring the same policy with other data. */
export function createCompiler(): Compile {
	let last: { readonly bytes: Uint8Array; readonly module: WebAssembly.Module } | undefined;
	return async (bytes) => {
		if (last !== undefined && isSame(last.bytes, bytes)) return last.module;
		const module = await compile(bytes);
		last = { bytes, module };
		return module;
	};
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
	return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

async function compile(source: PolicySource): Promise<WebAssembly.Module> {
	if (source instanceof WebAssembly.Module) return source;
	const bytes = typeof source === "string" ? await readPolicy(source) : source;
	try {
		return await WebAssembly.compile(bytes as BufferSource);
	} catch (cause) {
		throw new ResumeGuardError("policy_invalid", "the policy is not WebAssembly", { cause });
	}
}

/** @throws {ResumeGuardError} `file_unreadable` */
export async function readPolicy(path: string): Promise<Uint8Array> {
	// Imported only where a path is given: the core runs without a file system.
	const { readFile } = await import("node:fs/promises");
	try {
		return await readFile(path);
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `the policy ${path} cannot be read`, { cause });
	}
}

/** Of OPA's ABI 1.2: what opa-wasm and an evaluation call. Its versions are looked at, too. */
const FUNCTIONS = [
	"builtins",
	"entrypoints",
	"opa_eval",
	"opa_heap_ptr_get",
	"opa_heap_ptr_set",
	"opa_json_dump",
	"opa_json_parse",
	"opa_malloc",
];
const GLOBALS = ["opa_wasm_abi_version", "opa_wasm_abi_minor_version"];

function instantiate(module: WebAssembly.Module, entrypoints: readonly string[], data: object): Instance {
	// An evaluation would be the first to miss some of them.
	const exported = WebAssembly.Module.exports(module);
	const lacks = (kind: string) => (name: string) =>
		!exported.some((one) => one.name === name && one.kind === kind);
	const unexported = [...GLOBALS.filter(lacks("global")), ...FUNCTIONS.filter(lacks("function"))];
	if (unexported.length > 0) {
		throw new ResumeGuardError(
			"policy_invalid",
			`the policy cannot be loaded: it does not export ${unexported.join(", ")}`,
		);
	}
	let instance: Instance;
	try {
		// Its types leave out what it is made of.
		instance = opa.loadPolicySync(module, { initial: 5, maximum: MAXIMUM }) as unknown as Instance;
	} catch (cause) {
		throw new ResumeGuardError("policy_invalid", `the policy cannot be loaded: ${reasonOf(cause)}`, {
			cause,
		});
	}
	if (!(instance.minorVersion >= 2)) {
		throw new ResumeGuardError("policy_invalid", "the policy is of an ABI of OPA before 1.2");
	}
	const missing = entrypoints.filter((name) => !Object.hasOwn(Object(instance.entrypoints), name));
	if (missing.length > 0) {
		throw new ResumeGuardError("policy_invalid", `the policy has no entrypoint ${missing.join(", ")}`);
	}
	try {
		instance.setData(data);
	} catch (cause) {
		throw new ResumeGuardError("policy_invalid", `the policy cannot take its data: ${reasonOf(cause)}`, {
			cause,
		});
	}
	return instance;
}

// opa-wasm throws strings and plain objects, too.
function reasonOf(cause: unknown): string {
	if (typeof cause === "string") return cause;
	if (cause instanceof Error) return cause.message;
	return "unknown reason";
}

function fromBase64(text: string): Uint8Array {
	return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
