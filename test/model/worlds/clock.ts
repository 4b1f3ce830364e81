/** NumericDate, seconds, of the start of every world. */
export const START = 1_796_000_000;
/** How long an era is: a token that is minted in one has expired in the next. */
export const ERA = 1_000;

const realNow = Date.now;

/** Runs under a clock that stands still but where it is put. */
export async function withClock<T>(run: (setEra: (era: number) => void) => Promise<T>): Promise<T> {
	let now = START;
	Date.now = () => now * 1000;
	try {
		return await run((era) => {
			now = START + era * ERA;
		});
	} finally {
		Date.now = realNow;
	}
}

/** The `exp` of a token that is minted in an era: it has gone, skew and all, when the next one begins. */
export function expiryOf(era: number): number {
	return START + era * ERA + ERA / 2;
}
