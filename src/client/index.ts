export {
	createRecoveringClient,
	type RecoveringClient,
	type RecoveringClientOptions,
	type RepeatQuestion,
} from "./client.ts";
export type { Refusal, RefusalOutcome } from "./decision.ts";
export { RecoveryError, type RecoveryErrorCode } from "./errors.ts";
export type { RecoveryEvent, Subject } from "./events.ts";
export type { Fetch } from "./ground.ts";
export type { ToolAnnotations } from "./messages.ts";
export type { TokenRequest, TokenSource } from "./tokens.ts";
