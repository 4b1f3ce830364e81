import { stateOf } from "./files.ts";

/**
 * Looks for new rules once; resolves with whether what there is now is in force.
 *
 * @param again also looks at what has been refused already
 */
export type Attempt = (again: boolean) => Promise<boolean>;

const LOOK_MS = 200;
/** The clock of a file system may be coarse: a file may change twice and look the same. */
const SETTLE_MS = 2_000;
const RETRY_MS = { first: 1_000, last: 30_000 };

/**
 * Attempts when one of the files has changed, and for a moment after; what failed again and again, with growing pauses:
 * not every reason is in the files. Looks at them rather than being told of changes, since no platform tells of all
 * (links that lead elsewhere, mounted folders, files that are put in place of others).
 *
 * @returns how to stop
 */
export function followFiles(paths: readonly string[], attempt: Attempt): () => void {
	let seen: string | undefined;
	let settlesAt = 0;
	let retriesAt = Number.POSITIVE_INFINITY;
	let failures = 0;

	return repeat(async () => {
		const state = await stateOf(paths);
		const time = performance.now();
		if (state !== seen) {
			seen = state;
			settlesAt = time + SETTLE_MS;
			failures = 0;
			retriesAt = Number.POSITIVE_INFINITY;
		}
		const again = time >= retriesAt;
		if (!again && time > settlesAt) return LOOK_MS;
		if (await attempt(again)) {
			failures = 0;
			retriesAt = Number.POSITIVE_INFINITY;
		} else if (again || retriesAt === Number.POSITIVE_INFINITY) {
			retriesAt = time + Math.min(RETRY_MS.last, RETRY_MS.first * 2 ** failures);
			failures += 1;
		}
		return LOOK_MS;
	}, LOOK_MS);
}

/**
 * Attempts between `min` and `max` seconds after each time that went well, at a random moment, so that many hosts do not
 * come at once; after failures with pauses that grow from a second to `max`.
 *
 * @returns how to stop
 */
export function followUrl(
	{ min, max }: { readonly min: number; readonly max: number },
	attempt: Attempt,
): () => void {
	let failures = 0;
	const usual = () => between(min, max);

	return repeat(async () => {
		// A server that repairs itself is asked again; so is what it gave.
		if (await attempt(true)) {
			failures = 0;
			return usual();
		}
		const pause = Math.min(max, 2 ** Math.min(failures, 16));
		failures += 1;
		return between(pause / 2, pause);
	}, usual());
}

/** Milliseconds. */
function between(min: number, max: number): number {
	return (min + Math.random() * (max - min)) * 1000;
}

/** Runs `turn` after `first` milliseconds, and after each run again when it says. Keeps no process alive. */
function repeat(turn: () => Promise<number>, first: number): () => void {
	let timer: NodeJS.Timeout | undefined;
	let isStopped = false;
	const wait = (milliseconds: number) => {
		if (isStopped) return;
		timer = setTimeout(() => void turn().then(wait), milliseconds);
		timer.unref();
	};
	wait(first);
	return () => {
		isStopped = true;
		clearTimeout(timer);
	};
}
