import type { Enumeration } from "./enumerate.ts";

const usual = { resumes: 2, drops: 2, mishaps: 1 };

/** By hand. */
export const FULL: readonly Enumeration[] = [
	{ ...usual, events: 5, capacity: 100, stride: 1 },
	{ ...usual, events: 4, capacity: 3, stride: 1 },
];

/** With every run of the tests. */
export const SLICE: readonly Enumeration[] = [
	{ ...usual, events: 3, capacity: 100, stride: 61 },
	{ ...usual, events: 3, capacity: 2, stride: 211 },
	{ ...usual, events: 5, resumes: 1, capacity: 4, stride: 3_001 },
];
