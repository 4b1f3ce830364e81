import { readFileSync } from "node:fs";
import { buildWasm } from "./build-wasm.ts";
import type { Output } from "./generators.ts";

/** `opa build -O`: all levels make the same bytes of these policies (`npm run bench -- --optimization`). */
const optimization = 0;

const wasmPath = "src/generated/policy.wasm";

/**
 * Compiles `policies/` to Wasm. The entrypoints are the rules whose METADATA says so. Policy data is no part
 * of it: the adapter sets it.
 */
export async function buildPolicy(): Promise<Output[]> {
	const options = ["--capabilities", "tools/capabilities.json", "-O", String(optimization)];
	const sources = ["--ignore", "*_test.rego", "--ignore", "data.json", "policies"];
	return [{ path: wasmPath, content: await buildWasm([...options, ...sources]) }];
}

/** The Wasm as a module: the core needs no file system. */
export async function embedPolicy(): Promise<Output[]> {
	const base64 = readFileSync(wasmPath).toString("base64");
	const content = `// Generated from policies/ by \`npm run generate\`.

/** policy.wasm, base64. */
export const policyWasm: string =
	"${base64}";
`;
	return [{ path: "src/generated/policy-wasm.ts", content }];
}
