import type {
	CursorFacts,
	Event,
	Label,
	RequestFacts,
	RequestId,
	SessionFacts,
} from "../../../src/generated/types.ts";
import type { Claims } from "./claims.ts";

/** A need as a host has it. */
export interface Needed extends Label {
	readonly request_id?: RequestId;
}

/** An event after the cursor. */
export interface Waiting extends Needed {
	readonly id: string;
}

/** What is asked at any of the four moments: the same object that the guard takes. */
export interface Question {
	readonly now: number;
	readonly request: RequestFacts;
	readonly session?: {
		readonly binding: Claims;
		readonly transport: SessionFacts["transport"];
		readonly opened_at: number;
	};
	readonly presented?: Claims;
	readonly tool?: string;
	readonly rpc?: string;
	readonly reference?: Label;
	readonly event?: Event;
	readonly cursor?: CursorFacts;
	readonly pending?: readonly Waiting[];
	readonly open?: readonly Needed[];
}

/** The answer, whichever moment it is of. */
export interface Answer {
	readonly outcome: "proceed" | "reauthenticate" | "reauthorize" | "reinitialize" | "reissue" | "refuse";
	readonly code: string;
	readonly drift: readonly string[];
	readonly session: "keep" | "end";
	readonly status: number;
	readonly deliver?: number;
	readonly cursor?: string;
	readonly held?: {
		readonly event_id?: string;
		readonly tool?: string;
		readonly rpc?: string;
		readonly request_id?: RequestId;
		readonly missing: Need;
	};
	readonly required?: Need;
	readonly label?: Label;
}

export interface Need {
	readonly aud: readonly string[];
	readonly scope: readonly string[];
}
