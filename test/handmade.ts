/** A module that passes for a policy, made by hand: it answers one thing whatever it is asked. */
export interface Handmade {
	/** What every entrypoint answers; absent: undefined. */
	readonly answer?: unknown;
	/**
	 * What an evaluation does instead: runs into `unreachable`, gives up as OPA's runtime does, is undefined, or answers
	 * with an address that is not in its memory.
	 */
	readonly fails?: "trap" | "abort" | "undefined" | "outside" | "far outside";
	/** How many evaluations an instance answers before it fails. Default: none. */
	readonly after?: number;
	readonly abi?: number;
	readonly minorAbi?: number;
	readonly entrypoints?: readonly string[];
	/** Pages of memory that the module says it needs. */
	readonly pages?: number;
	/** Whether the memory grows by a page with every evaluation. */
	readonly grows?: boolean;
}

const MOMENTS = ["session", "call", "resume", "delivery"];
const I32 = 0x7f;
/** Where the texts are; what is below belongs to nobody, input comes after. */
const TEXTS = 0x400;
const HEAP = 0x40000;

/**
 * The bytes of such a module, with the exports that opa-wasm looks for (OPA's Wasm ABI 1.2): every function answers a
 * constant, and a "value" is the address of its JSON text.
 */
export function handmadePolicy(made: Handmade = {}): Uint8Array<ArrayBuffer> {
	const texts = textsAt(TEXTS);
	const builtins = texts.add("{}");
	const names = made.entrypoints ?? MOMENTS.map((moment) => `mcp/${moment}/decision`);
	const entrypoints = texts.add(JSON.stringify(Object.fromEntries(names.map((name, id) => [name, id]))));
	const answer = texts.add(JSON.stringify("answer" in made ? [{ result: made.answer }] : []));
	const undefinedAnswer = texts.add("[]");
	const message = texts.add("handmade: gives up");

	const end = 0x0b;
	const constant = (value: number) => [0x41, ...signed(value), end];
	// Global 2 counts the evaluations.
	const count = [0x23, 2, 0x41, 1, 0x6a, 0x24, 2];
	const failure = {
		trap: [0x00],
		abort: [0x41, ...signed(message), 0x10, 0, 0x00],
		undefined: [0x41, ...signed(undefinedAnswer), 0x0f],
		outside: [0x41, ...signed(0x7fff_ffff), 0x0f],
		"far outside": [0x41, ...signed(-1), 0x0f],
	};
	// if (evaluations > after) { failure }
	const condition = [0x23, 2, 0x41, ...signed(made.after ?? 0), 0x4a, 0x04, 0x40];
	const fail = made.fails === undefined ? [] : [...condition, ...failure[made.fails], end];
	const grow = made.grows ? [0x41, 1, 0x40, 0, 0x1a] : [];
	const evaluate = [...count, ...grow, ...fail, ...constant(answer)];

	// Types: 0 (i32) → (), 1 () → i32, 2 (i32) → i32, 3 (i32, i32) → i32, 4 (seven i32) → i32.
	const type = (params: number, results: number) => [
		0x60,
		...vector(repeat(I32, params)),
		...vector(repeat(I32, results)),
	];
	const functions: readonly [name: string, type: number, body: readonly number[]][] = [
		["builtins", 1, constant(builtins)],
		["entrypoints", 1, constant(entrypoints)],
		["opa_malloc", 2, constant(HEAP)],
		["opa_json_parse", 3, constant(HEAP)],
		["opa_json_dump", 2, [0x20, 0, end]],
		["opa_heap_ptr_get", 1, constant(HEAP)],
		["opa_heap_ptr_set", 0, [end]],
		["opa_eval", 4, evaluate],
	];
	const globals: readonly [value: number, mutable: number][] = [
		[made.abi ?? 1, 0],
		[made.minorAbi ?? 2, 0],
		[0, 1],
	];
	const exported = [
		...functions.map(([name], index) => [...string(name), 0, index + 1]),
		[...string("opa_wasm_abi_version"), 3, 0],
		[...string("opa_wasm_abi_minor_version"), 3, 1],
	];
	return new Uint8Array([
		...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
		...section(1, vector([type(1, 0), type(0, 1), type(1, 1), type(2, 1), type(7, 1)])),
		...section(
			2,
			vector([
				[...string("env"), ...string("opa_abort"), 0, 0],
				[...string("env"), ...string("memory"), 2, 0, ...unsigned(made.pages ?? 2)],
			]),
		),
		...section(3, vector(functions.map(([, index]) => [index]))),
		...section(6, vector(globals.map(([value, mutable]) => [I32, mutable, ...constant(value)]))),
		...section(7, vector(exported)),
		...section(
			10,
			vector(
				functions.map(([, , body]) => {
					const code = [0, ...body];
					return [...unsigned(code.length), ...code];
				}),
			),
		),
		...section(11, vector([[0, ...constant(TEXTS), ...vector(texts.bytes.map((byte) => [byte]))]])),
	]);
}

/** Texts one after the other, each with the NUL that ends it. */
function textsAt(start: number) {
	const bytes: number[] = [];
	return {
		bytes,
		add(text: string): number {
			const address = start + bytes.length;
			bytes.push(...new TextEncoder().encode(text), 0);
			return address;
		},
	};
}

function section(id: number, content: readonly number[]): number[] {
	return [id, ...unsigned(content.length), ...content];
}

function vector(items: readonly (readonly number[])[]): number[] {
	return [...unsigned(items.length), ...items.flat()];
}

function repeat(value: number, times: number): number[][] {
	return Array.from({ length: times }, () => [value]);
}

function string(text: string): number[] {
	return vector([...new TextEncoder().encode(text)].map((byte) => [byte]));
}

// LEB128.
function unsigned(value: number): number[] {
	return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

function signed(value: number): number[] {
	const low = value & 0x7f;
	const rest = value >> 7;
	const isLast = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
	return isLast ? [low] : [low | 0x80, ...signed(rest)];
}
