import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPolicy } from "@open-policy-agent/opa-wasm";
import { buildWasm } from "./build-wasm.ts";
import type { Output } from "./generators.ts";
import { pinnedOpa, runOpa } from "./opa.ts";

interface Builtin {
	readonly name: string;
	readonly decl: { readonly args?: readonly unknown[]; readonly result?: unknown };
	readonly relation?: boolean;
	readonly deprecated?: boolean;
}

interface Capabilities {
	readonly builtins: readonly Builtin[];
	readonly [rest: string]: unknown;
}

/**
 * What policies may use: the builtins that OPA compiles into the Wasm itself. All others a host has to bring;
 * opa-wasm lacks most of them, and those it has (`sprintf`, `regex.split`, `yaml.*`) do not answer as OPA does.
 * With this file a builtin that would only fail at evaluation fails at build.
 */
export async function generateCapabilities(): Promise<Output[]> {
	const all = JSON.parse(
		await runOpa(["capabilities", "--version", `v${pinnedOpa}`], { exact: true }),
	) as Capabilities;
	// `opa build` takes calls of `print` out, but `opa check` does not know what it compiles them to.
	const usable = all.builtins.filter(({ name, deprecated }) => !deprecated && name !== "print");
	const left = await leftToTheHost(usable);
	const builtins = usable.filter(({ name }) => !left.has(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
	const content = `${JSON.stringify({ ...all, builtins }, undefined, "\t")}\n`;
	return [{ path: "tools/capabilities.json", content }];
}

/** Compiles one call of each builtin and asks the Wasm which of them it needs from its host. */
async function leftToTheHost(builtins: readonly Builtin[]): Promise<Set<string>> {
	// Neither can be called by name: they are `:=` and `=`, which the compiler resolves.
	const callable = builtins.filter(({ name }) => name !== "assign" && name !== "eq");
	const rules = callable.map(({ name, decl, relation }, index) => {
		const args = (decl.args ?? []).map((_, arg) => `input[${arg}]`);
		if (relation) return `rule_${index} if ${name}(${[...args, "_"].join(", ")})`;
		return `rule_${index} ${decl.result === undefined ? "if" : ":="} ${name}(${args.join(", ")})`;
	});
	const folder = mkdtempSync(join(tmpdir(), "capabilities-"));
	try {
		const policy = join(folder, "probe.rego");
		writeFileSync(policy, ["package probe", ...rules, ""].join("\n"));
		return new Set(await builtinsOf(await buildWasm(["-e", "probe", policy])));
	} finally {
		rmSync(folder, { recursive: true });
	}
}

/** What a policy says it needs from its host (OPA's Wasm ABI 1.x, `builtins`). */
async function builtinsOf(wasm: Uint8Array<ArrayBuffer>): Promise<string[]> {
	const { mem, wasmInstance } = await loadPolicy(wasm);
	const { builtins, opa_json_dump } = (wasmInstance as { exports: unknown }).exports as WasmExports;
	const bytes = new Uint8Array(mem.buffer as ArrayBuffer, opa_json_dump(builtins()));
	const json = new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
	return Object.keys(JSON.parse(json) as Record<string, number>);
}

interface WasmExports {
	builtins(): number;
	opa_json_dump(value: number): number;
}
