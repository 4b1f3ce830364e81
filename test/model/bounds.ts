/** Everything up to the stated bounds, by hand (`npm run model`); a slice of it otherwise. */
export const isFull = process.env.MODEL === "full";

/** Milliseconds for one test: a machine may be busy. */
export const TIMEOUT = isFull ? 4 * 60 * 60 * 1_000 : 120_000;
