export type { BundleKey } from "./bundle/keys.ts";
export type { BundleOptions, BundleVerification } from "./bundle/options.ts";
export type { Claims } from "./claims.ts";
export type { Decisions } from "./decision.ts";
export { ResumeGuardError, type ResumeGuardErrorCode } from "./errors.ts";
export type {
	Call,
	EventHeader,
	EventLog,
	Location,
	NewEvent,
	StoredEvent,
	Stretch,
} from "./events/log.ts";
export {
	createMemoryEventLog,
	type EventLogLimits,
	type EventLogStats,
	type MemoryEventLog,
} from "./events/memory.ts";
export type {
	CallQuestion,
	DeliveryQuestion,
	Questions,
	ResumeQuestion,
	SessionInput,
	SessionQuestion,
} from "./facts.ts";
export type { EventInput, NeedInput } from "./fold.ts";
export type {
	Binding,
	CallDecision,
	CursorFacts,
	Decision,
	DeliveryDecision,
	Event,
	Facts,
	Held,
	Label,
	Pending,
	PendingNeed,
	PolicyData,
	Presented,
	RequestFacts,
	RequestId,
	Required,
	ResumeDecision,
	SessionDecision,
	SessionFacts,
} from "./generated/types.ts";
export {
	createResumeGuard,
	type DecisionEvent,
	type PolicyFault,
	type ResumeGuard,
	type ResumeGuardOptions,
} from "./guard.ts";
export type { Moment, PolicySource } from "./policy.ts";
export { createMemorySessionStore, type SessionLimits } from "./sessions/memory.ts";
export type { SessionKey, SessionMatch, SessionRecord, SessionStore } from "./sessions/store.ts";
export type { RulesOptions, RulesStatus } from "./source.ts";
export {
	bearerToken,
	createTokenVerifier,
	type DpopOptions,
	type TokenClaims,
	type TokenCredentials,
	type TokenDeviations,
	type TokenRequest,
	type TokenScheme,
	type TokenVerifier,
	type TokenVerifierOptions,
	tokenCredentials,
} from "./tokens/index.ts";
