/** Something that is timed, in turns with others. */
export interface Contender {
	readonly name: string;
	readonly run: () => unknown;
}

const WARM_UP = 300;
const TURN = 40;

/** Microseconds a call, the median of each turn: A B C, B C A, …, so that whatever else the machine does meets all. */
export async function takeTurns(contenders: readonly Contender[], rounds: number): Promise<number[][]> {
	for (const { run } of contenders) await turn(run, WARM_UP);
	const times: number[][] = contenders.map(() => []);
	for (let round = 0; round < rounds; round += 1) {
		for (let place = 0; place < contenders.length; place += 1) {
			const index = (round + place) % contenders.length;
			const { run } = contenders[index] as Contender;
			times[index]?.push(await turn(run, TURN));
		}
	}
	return times;
}

async function turn(run: () => unknown, milliseconds: number): Promise<number> {
	const calls: number[] = [];
	const end = performance.now() + milliseconds;
	for (let now = performance.now(); now < end || calls.length < 3; ) {
		const start = now;
		const answer = run();
		if (answer instanceof Promise) await answer;
		now = performance.now();
		calls.push(now - start);
	}
	return median(calls) * 1000;
}

export function median(values: readonly number[]): number {
	const sorted = values.toSorted((a, b) => a - b);
	return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}
