// Generated from schemas/ by `npm run generate`.
import type { CallDecision, Decision, DeliveryDecision, Facts, PolicyData, ResumeDecision, SessionDecision, Table } from "./types.js";

export interface ValidationError {
	/** JSON Pointer to the place in the value. */
	readonly instancePath: string;
	readonly keyword: string;
	readonly params: Readonly<Record<string, unknown>>;
	readonly message?: string;
}

export interface Validator<T> {
	/** Whether the value is valid; where the schema has defaults, writes them into it. */
	(value: unknown): value is T;
	/** What was wrong with the last value. */
	errors?: ValidationError[] | null;
}

export declare const validateData: Validator<PolicyData>;
export declare const validateDecision: Validator<Decision>;
export declare const validateSessionDecision: Validator<SessionDecision>;
export declare const validateCallDecision: Validator<CallDecision>;
export declare const validateResumeDecision: Validator<ResumeDecision>;
export declare const validateDeliveryDecision: Validator<DeliveryDecision>;
export declare const validateFacts: Validator<Facts>;
export declare const validateTable: Validator<Table>;
