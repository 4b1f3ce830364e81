import type { Bounds } from "./enumerate.ts";

/** By the name of the universe. */
export const FULL: Readonly<Record<string, Bounds>> = {
	audiences: { events: 5, stride: 1 },
	scopes: { events: 3, stride: 1 },
	aliases: { events: 2, stride: 1 },
};

/** What is looked at with every run of the tests. */
export const SLICE: Readonly<Record<string, Bounds>> = {
	audiences: { events: 5, stride: 151 },
	scopes: { events: 3, stride: 101 },
	aliases: { events: 2, stride: 101 },
};
