import * as opaWasm from "@open-policy-agent/opa-wasm";
import { ResumeGuardError } from "./errors.ts";
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

type Instance = ReturnType<typeof opa.loadPolicySync>;

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
	let instance: Instance | undefined = instantiate(module, data);

	return {
		evaluate(moment, facts) {
			const current = instance ?? instantiate(module, data);
			// Until it has answered, it is not known to be sound.
			instance = undefined;
			const results: unknown = current.evaluate(toBuffer(facts), entrypoint(moment));
			if (current.mem.buffer.byteLength <= BUDGET * PAGE) instance = current;
			return resultOf(results);
		},
		replace() {
			instance = undefined;
		},
	};
}

const encoder = new TextEncoder();

// opa-wasm takes an ArrayBuffer for JSON text, and all of it.
function toBuffer(text: string): ArrayBuffer {
	const { buffer, byteLength } = encoder.encode(text);
	return buffer.byteLength === byteLength ? buffer : buffer.slice(0, byteLength);
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

// Once for all guards: it is most of what creating one costs.
function compilePackaged(): Promise<WebAssembly.Module> {
	packaged ??= compile(fromBase64(policyWasm));
	return packaged;
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

async function readPolicy(path: string): Promise<Uint8Array> {
	// Imported only where a path is given: the core runs without a file system.
	const { readFile } = await import("node:fs/promises");
	try {
		return await readFile(path);
	} catch (cause) {
		throw new ResumeGuardError("file_unreadable", `the policy ${path} cannot be read`, { cause });
	}
}

function instantiate(module: WebAssembly.Module, data: PolicyData): Instance {
	let instance: Instance;
	try {
		instance = opa.loadPolicySync(module, { initial: 5, maximum: MAXIMUM });
	} catch (cause) {
		throw new ResumeGuardError("policy_invalid", `the policy cannot be loaded: ${reasonOf(cause)}`, {
			cause,
		});
	}
	const missing = MOMENTS.map(entrypoint).filter((name) => !Object.hasOwn(instance.entrypoints, name));
	if (missing.length > 0) {
		throw new ResumeGuardError("policy_invalid", `the policy has no entrypoint ${missing.join(", ")}`);
	}
	instance.setData({ mcp: data });
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
