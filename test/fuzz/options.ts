/** Inputs of each kind. */
export const RUNS = Number(process.env.FUZZ_RUNS ?? 250);

/** The seed is in the message of a failure, and `FUZZ_SEED` plays it again. */
export const seed = Number(process.env.FUZZ_SEED ?? 20_261_129);

export const options = { numRuns: RUNS, seed, endOnFailure: true };
