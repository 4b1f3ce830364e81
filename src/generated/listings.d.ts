// Generated from schemas/ by `npm run generate`.
import type { ValidationError } from "./validators.js";

/** Leaves all that is wrong with the value in `errors`; answers whether nothing is. */
export interface Listing {
	(value: unknown): boolean;
	errors?: ValidationError[] | null;
}

export declare const listDataErrors: Listing;
export declare const listTableErrors: Listing;
