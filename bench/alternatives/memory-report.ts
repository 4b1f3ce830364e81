import { runScript } from "./scripts.ts";

const COUNT = 1_000_000;
const MIB = 1024 * 1024;
/** Of the heap and what lies outside of it (`external`: array buffers, Wasm memory), together. */
const GROWTH = 8;

interface Usage {
	readonly before: NodeJS.MemoryUsage;
	readonly after: NodeJS.MemoryUsage;
}

/** What a million decisions of one warm guard leave behind. Growth past the bound is a fault: the exit code is 1. */
export async function reportMemory(): Promise<string> {
	const text = await runScript("memory", { flags: ["--expose-gc"], args: [String(COUNT)] });
	const { before, after } = JSON.parse(text) as Usage;
	const growth = (name: keyof NodeJS.MemoryUsage) => (after[name] - before[name]) / MIB;
	const grown = growth("heapUsed") + growth("external");
	const isBounded = grown <= GROWTH;
	if (!isBounded) process.exitCode = 1;
	const names = ["heapUsed", "external", "arrayBuffers", "rss"] as const;
	return [
		row(`${COUNT.toLocaleString("en-US")} decisions`, "before", "after", "growth"),
		...names.map((name) => row(name, mib(before[name] / MIB), mib(after[name] / MIB), signed(growth(name)))),
		`heapUsed and external: ${signed(grown)} (≤ ${GROWTH} MiB: ${isBounded ? "ok" : "NOT ok"})`,
	].join("\n");
}

function mib(amount: number): string {
	return `${amount.toFixed(2)} MiB`;
}

function signed(amount: number): string {
	return amount < 0 ? mib(amount) : `+${mib(amount)}`;
}

function row(name: string, ...cells: readonly string[]): string {
	return [name.padEnd(20), ...cells.map((cell) => cell.padStart(12))].join("  ");
}
