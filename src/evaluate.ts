/** What opa-wasm has made of a policy, as far as it takes to ask it. */
export interface LoadedPolicy {
	readonly wasmInstance: WebAssembly.Instance;
	readonly mem: WebAssembly.Memory;
	/** Where the data is, and where the heap begins after it. */
	readonly dataAddr: number;
	readonly dataHeapPtr: number;
}

type Eval = (
	reserved: 0,
	entrypoint: number,
	data: number,
	input: number,
	inputLength: number,
	heap: number,
	format: 0,
) => number;

const PAGE = 64 * 1024;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Asks a policy (OPA's Wasm ABI from 1.2 on, `opa_eval`). As opa-wasm does, but the text goes straight to its place, and
 * the answer has to end within the memory: opa-wasm looks for the end of one outside of it for ever.
 *
 * @param input JSON text
 * @returns the set of results
 * @throws whatever the Wasm does, or a `RangeError` or `TypeError` for an answer that is none
 */
export function evaluateText(
	{ wasmInstance, mem, dataAddr, dataHeapPtr }: LoadedPolicy,
	entrypoint: number,
	input: string,
): unknown {
	const length = writeText(mem, dataHeapPtr, input);
	const evaluate = wasmInstance.exports.opa_eval as Eval;
	const start = evaluate(0, entrypoint, dataAddr, dataHeapPtr, length, dataHeapPtr + length, 0);
	const memory = new Uint8Array(mem.buffer);
	const end = memory.indexOf(0, start >>> 0);
	if (end === -1) throw new RangeError("the policy answers with what is not in its memory");
	return JSON.parse(decoder.decode(memory.subarray(start >>> 0, end)));
}

/** @returns how many bytes it has become */
function writeText(mem: WebAssembly.Memory, address: number, text: string): number {
	const { read, written } = encoder.encodeInto(text, new Uint8Array(mem.buffer, address));
	if (read === text.length) return written;
	// A code unit is three bytes at most.
	mem.grow(Math.ceil((text.length * 3) / PAGE));
	return writeText(mem, address, text);
}
