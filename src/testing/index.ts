export type { CaseResult } from "../tables.ts";
export {
	type CodeCoverage,
	type CodeCoverageOptions,
	type CodeName,
	coverageOfCodes,
} from "./coverage.ts";
export {
	type CallChanges,
	type ClaimChanges,
	createFacts,
	type DeliveryChanges,
	type FactsBuilder,
	type FactsOf,
	facts,
	type ResumeChanges,
	type SessionChanges,
} from "./facts.ts";
export { type TestFunction, type TestTablesOptions, testTables } from "./tables.ts";
