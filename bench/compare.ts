import { do_not_optimize, measure } from "mitata";

/** Two things that are timed in turns. */
export interface Comparison {
	readonly subject: string;
	readonly run: () => unknown;
	readonly beside: string;
	readonly runBeside: () => unknown;
	/** The target: at most this many times as long as what it is beside. */
	readonly atMost?: number;
}

/** Nanoseconds of one round: the median of the calls in a turn of each. */
interface Round {
	readonly time: number;
	readonly beside: number;
}

const WARM_UP = 300e6;
const TURN = 20e6;

/**
 * Times all comparisons in turns, A B A B …, so that whatever else the machine does meets both sides, and takes
 * the ratio round by round. Answers with a table: medians, and the quartiles of the ratio.
 */
export async function compare(comparisons: readonly Comparison[], rounds: number): Promise<string> {
	const timed = comparisons.map((comparison) => ({ comparison, rounds: [] as Round[] }));
	for (const { run, runBeside } of comparisons) {
		await timeOf(run, WARM_UP);
		await timeOf(runBeside, WARM_UP);
	}
	for (let round = 0; round < rounds; round++) {
		for (const { comparison, rounds } of timed) {
			const time = await timeOf(comparison.run, TURN);
			rounds.push({ time, beside: await timeOf(comparison.runBeside, TURN) });
		}
	}
	const heading = ["", "median", "beside", "median", "ratio", "quartiles", "target", ""];
	return table([heading, ...timed.map(({ comparison, rounds }) => row(comparison, rounds))]);
}

async function timeOf(run: () => unknown, nanoseconds: number): Promise<number> {
	// Each call by itself: the mean of a batch would count in what interrupts it.
	const options = { gc: false, min_cpu_time: nanoseconds, batch_threshold: 0 };
	return (await measure(() => do_not_optimize(run()), options)).p50;
}

function row({ subject, beside, atMost }: Comparison, rounds: readonly Round[]): string[] {
	const ratios = rounds.map(({ time, beside }) => time / beside);
	const [lower, ratio, upper] = [0.25, 0.5, 0.75].map((part) => quantile(ratios, part)) as [
		number,
		number,
		number,
	];
	return [
		subject,
		microseconds(rounds.map(({ time }) => time)),
		beside,
		microseconds(rounds.map(({ beside }) => beside)),
		ratio.toFixed(2),
		`${lower.toFixed(2)}–${upper.toFixed(2)}`,
		...(atMost === undefined ? ["", ""] : [`≤ ${atMost}`, ratio <= atMost ? "ok" : "NOT ok"]),
	];
}

function microseconds(nanoseconds: readonly number[]): string {
	return `${(quantile(nanoseconds, 0.5) / 1000).toFixed(1)} µs`;
}

function quantile(values: readonly number[], part: number): number {
	const sorted = values.toSorted((a, b) => a - b);
	return sorted[Math.round(part * (sorted.length - 1))] ?? Number.NaN;
}

function table(rows: readonly (readonly string[])[]): string {
	const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
	const isText = (column: number) => column === 0 || column === 2 || column === 7;
	const pad = (text: string, column: number) =>
		isText(column) ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0);
	return rows.map((row) => row.map(pad).join("  ").trimEnd()).join("\n");
}
