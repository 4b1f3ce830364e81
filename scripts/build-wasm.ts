import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tar from "tar";
import { runOpa } from "./opa.ts";

/** Runs `opa build -t wasm` with these arguments, from the repository root. */
export async function buildWasm(args: readonly string[]): Promise<Uint8Array<ArrayBuffer>> {
	const folder = mkdtempSync(join(tmpdir(), "wasm-"));
	try {
		const bundle = join(folder, "bundle.tar.gz");
		await runOpa(["build", "-t", "wasm", ...args, "-o", bundle], { exact: true });
		return await readWasm(bundle);
	} finally {
		rmSync(folder, { recursive: true });
	}
}

async function readWasm(bundle: string): Promise<Uint8Array<ArrayBuffer>> {
	const chunks: Buffer[] = [];
	await tar.list({
		file: bundle,
		filter: (path) => path === "/policy.wasm",
		onReadEntry: (entry) => entry.on("data", (chunk) => chunks.push(chunk)),
	});
	if (chunks.length === 0) throw new Error(`${bundle}: no policy.wasm in it`);
	return new Uint8Array(Buffer.concat(chunks));
}
