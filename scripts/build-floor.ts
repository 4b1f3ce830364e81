import { buildWasm } from "./build-wasm.ts";
import type { Output } from "./generators.ts";

/** Compiles the policy that the benchmark holds the others against. */
export async function buildFloor(): Promise<Output[]> {
	return [{ path: "bench/floor.wasm", content: await buildWasm(["bench/floor.rego"]) }];
}
