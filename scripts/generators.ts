import { buildFloor } from "./build-floor.ts";
import { buildPolicy, embedPolicy } from "./build-policy.ts";
import { generateCapabilities } from "./generate-capabilities.ts";
import { generateTypes } from "./generate-types.ts";
import { generateListings, generateValidators } from "./generate-validators.ts";

/** A file that is generated and committed. */
export interface Output {
	/** Relative to the repository root. */
	readonly path: string;
	readonly content: string | Uint8Array;
}

export interface Generator {
	readonly name: string;
	readonly paths: readonly string[];
	readonly needsOpa: boolean;
	generate(): Promise<Output[]>;
}

/** In the order in which they build on each other's files. */
export const generators: readonly Generator[] = [
	{ name: "types", paths: ["src/generated/types.ts"], needsOpa: false, generate: generateTypes },
	{
		name: "validators",
		paths: ["src/generated/validators.js", "src/generated/validators.d.ts"],
		needsOpa: false,
		generate: generateValidators,
	},
	{
		name: "listings",
		paths: ["src/generated/listings.js", "src/generated/listings.d.ts"],
		needsOpa: false,
		generate: generateListings,
	},
	{
		name: "capabilities",
		paths: ["tools/capabilities.json"],
		needsOpa: true,
		generate: generateCapabilities,
	},
	{ name: "policy", paths: ["src/generated/policy.wasm"], needsOpa: true, generate: buildPolicy },
	{
		name: "embedded-policy",
		paths: ["src/generated/policy-wasm.ts"],
		needsOpa: false,
		generate: embedPolicy,
	},
	{ name: "floor", paths: ["bench/floor.wasm"], needsOpa: true, generate: buildFloor },
];
