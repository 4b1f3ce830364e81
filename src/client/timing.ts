/** Thrown by {@link within}. */
export class TimedOut extends Error {
	override readonly message = "Timed out";
}

/** The longest time that a timer takes, in milliseconds. */
export const MAX_TIMER = 2 ** 31 - 1;

/** Resolves after so many milliseconds; rejects with the signal's reason if that is aborted first. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		const stop = () => {
			clearTimeout(timer);
			reject(signal.reason);
		};
		const timer = setTimeout(() => {
			signal.removeEventListener("abort", stop);
			resolve();
		}, milliseconds);
		if (signal.aborted) stop();
		else signal.addEventListener("abort", stop, { once: true });
	});
}

/** Settles as `work` does, or rejects with the signal's reason when that is aborted first. */
export function unless<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
	return new Promise((resolve, reject) => {
		const stop = () => reject(signal.reason);
		if (signal.aborted) stop();
		signal.addEventListener("abort", stop, { once: true });
		work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
	});
}

/**
 * Settles as the work does, but in time: rejects with {@link TimedOut} after so many milliseconds, with the signal's
 * reason if that is aborted. Then the signal that the work was given is aborted, and nobody waits for it any more.
 */
export async function within<T>(
	milliseconds: number,
	signal: AbortSignal | undefined,
	work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
	const { signal: inner, abort, release } = linked(signal);
	const timer = setTimeout(() => abort(new TimedOut()), Math.max(0, milliseconds));
	try {
		return await unless(inner, work(inner));
	} finally {
		clearTimeout(timer);
		release();
	}
}

/** A signal that is aborted with another one, until it is released from it, or by itself. */
export function linked(outer: AbortSignal | undefined | null): {
	readonly signal: AbortSignal;
	abort(reason?: unknown): void;
	release(): void;
} {
	const controller = new AbortController();
	const follow = () => controller.abort(outer?.reason);
	if (outer?.aborted) follow();
	else outer?.addEventListener("abort", follow, { once: true });
	return {
		signal: controller.signal,
		abort: (reason) => controller.abort(reason),
		release: () => outer?.removeEventListener("abort", follow),
	};
}
