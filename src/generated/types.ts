// Generated from schemas/ by `npm run generate`.

/**
 * An absolute URI without fragment (RFC 8707 section 2), or any other audience; never a pattern.
 */
export type Indicator = string;
/**
 * One scope token (RFC 6749 section 3.3).
 */
export type Scope = string;
/**
 * An indicator; or scheme, authority and a path that ends in /*: what lies below it.
 */
export type CoverageEntry = string;
/**
 * The answer: what the policy decided, and the adapter has checked.
 */
export type Decision = SessionDecision | CallDecision | ResumeDecision | DeliveryDecision;
/**
 * The answer to a `session` question.
 */
export type SessionDecision = SessionProceed | SessionReauthenticate | SessionReinitialize | SessionRefuse;
/**
 * A refusal of the operator's own (policies/mcp/custom).
 */
export type CustomCode = `custom:${string}`;
/**
 * The claims that broke identity or profile.
 */
export type Drift = string[];
/**
 * What becomes of the session.
 */
export type SessionFate = "keep" | "end";
/**
 * The HTTP status.
 */
export type RefusalStatus = number;
/**
 * The answer to a `call` question.
 */
export type CallDecision =
	CallProceed | CallReauthenticate | CallReauthorize | CallReissue | CallReinitialize | CallRefuse;
/**
 * The answer to a `resume` question.
 */
export type ResumeDecision =
	| ResumeProceed
	| ResumeReauthenticate
	| ResumeReauthorize
	| ResumeReissue
	| ResumeReinitialize
	| ResumeRefuse;
/**
 * How many pending events to send, counted from the front.
 */
export type Deliver = number;
/**
 * Where the client's Last-Event-ID stands afterwards.
 */
export type Cursor = string;
/**
 * The answer to a `delivery` question.
 */
export type DeliveryDecision =
	| DeliveryProceed
	| DeliveryReauthenticate
	| DeliveryReauthorize
	| DeliveryReissue
	| DeliveryReinitialize
	| DeliveryRefuse;
/**
 * sse: HTTP+SSE of MCP 2024-11-05. streamable-http: MCP 2025-03-26 and later.
 */
export type Transport = "sse" | "streamable-http";
/**
 * @minItems 1
 */
export type Audience = string[];
export type Strings = string[];
/**
 * A JSON-RPC id.
 */
export type RequestId = string | number;

/**
 * policies/mcp/data.json: what most security teams edit, and all they need to.
 */
export interface PolicyData {
	/**
	 * How a session's aud and scope may change.
	 */
	profile?: "strict" | "covering" | "per-tool";
	/**
	 * atomic: all that is pending, or nothing. prefix: what comes before the first uncovered event.
	 */
	replay?: "atomic" | "prefix";
	/**
	 * What becomes of a session that a stranger presents.
	 */
	foreign_principal?: "end" | "keep";
	/**
	 * Sessions without a token are allowed; they may only call what needs nothing.
	 */
	anonymous?: boolean;
	/**
	 * Seconds; the only skew there is.
	 */
	clock_skew?: number;
	/**
	 * Further claims that are identity, beside iss, sub, client_id and cnf.
	 */
	identity_claims?: string[];
	/**
	 * This server's own resource indicators (RFC 8707), beside those of tools, methods, coverage and aliases.
	 *
	 * @minItems 1
	 */
	resources: Indicator[];
	/**
	 * What a call of a tool needs; "*": the rest.
	 */
	tools?: {
		[k: string]: Need;
	};
	/**
	 * What other methods need; "*": the rest, tasks/… aside.
	 */
	methods?: {
		[k: string]: Need;
	};
	session_need?: Need;
	/**
	 * Which audience stands for which resource indicators. One step, never transitive.
	 */
	coverage?: {
		[k: string]: CoverageEntry[];
	};
	/**
	 * Names of one resource: disjoint sets.
	 */
	aliases?: Indicator[][];
	/**
	 * code → HTTP status, where a host needs another one.
	 */
	status?: {
		[k: string]: number;
	};
}
export interface Need {
	aud: Indicator[];
	scope: Scope[];
}
/**
 * The request goes on.
 */
export interface SessionProceed {
	outcome: "proceed";
	code: "covered";
	/**
	 * @maxItems 0
	 */
	drift: string[];
	session: "keep";
	status: 200;
	label: StoredLabel;
}
/**
 * What to store with the events that follow.
 */
export interface StoredLabel {
	tool?: string;
	rpc?: string;
	aud: string[];
	scope: string[];
}
/**
 * A valid token is needed.
 */
export interface SessionReauthenticate {
	outcome: "reauthenticate";
	code: ("token_missing" | "token_expired") | CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * What was wrong with the question, for the author of the host.
	 */
	detail?: string;
}
/**
 * A new session is needed.
 */
export interface SessionReinitialize {
	outcome: "reinitialize";
	code: ("session_unknown" | "principal_drift" | "binding_drift") | CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
}
/**
 * The request is refused.
 */
export interface SessionRefuse {
	outcome: "refuse";
	code:
		| (
				| "session_required"
				| "request_id_in_use"
				| "quota_exceeded"
				| "undecided"
				| "invalid_facts"
				| "policy_fault"
		  )
		| CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * What was wrong with the question, for the author of the host.
	 */
	detail?: string;
}
/**
 * The call goes to the MCP server.
 */
export interface CallProceed {
	outcome: "proceed";
	code: "covered";
	/**
	 * @maxItems 0
	 */
	drift: string[];
	session: "keep";
	status: 200;
	label: StoredLabel;
}
/**
 * A valid token is needed.
 */
export interface CallReauthenticate {
	outcome: "reauthenticate";
	code: ("token_missing" | "token_expired") | CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * What was wrong with the question, for the author of the host.
	 */
	detail?: string;
}
/**
 * A token that covers `required` goes on from the same cursor.
 */
export interface CallReauthorize {
	outcome: "reauthorize";
	code: "audience_not_covered" | "scope_not_covered";
	drift: Drift;
	session: "keep";
	status: RefusalStatus;
	held: Held;
	required: Required;
}
/**
 * What is not covered: the first pending event (with event_id), a call that is still running, or the call itself.
 */
export interface Held {
	event_id?: string;
	tool?: string;
	rpc?: string;
	request_id?: string | number;
	missing: Missing;
}
/**
 * What the presented token lacks.
 */
export interface Missing {
	aud: string[];
	scope: string[];
}
/**
 * A token that would proceed: aud and scope, all of them.
 */
export interface Required {
	/**
	 * @minItems 1
	 */
	aud: string[];
	scope: string[];
}
/**
 * The stream cannot be resumed; call again. No token of this server can have what is missing.
 */
export interface CallReissue {
	outcome: "reissue";
	code: "audience_not_covered" | "scope_not_covered";
	drift: Drift;
	session: "keep";
	status: RefusalStatus;
	held: Held;
}
/**
 * A new session is needed.
 */
export interface CallReinitialize {
	outcome: "reinitialize";
	code:
		| (
				| "session_unknown"
				| "principal_drift"
				| "binding_drift"
				| "audience_not_covered"
				| "scope_not_covered"
		  )
		| CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	held?: Held;
}
/**
 * The request is refused.
 */
export interface CallRefuse {
	outcome: "refuse";
	code:
		| (
				| "tool_unmapped"
				| "request_id_in_use"
				| "quota_exceeded"
				| "undecided"
				| "invalid_facts"
				| "policy_fault"
		  )
		| CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * What was wrong with the question, for the author of the host.
	 */
	detail?: string;
}
/**
 * All that is pending goes out, in order, then what is still to come.
 */
export interface ResumeProceed {
	outcome: "proceed";
	code: "covered";
	/**
	 * @maxItems 0
	 */
	drift: string[];
	session: "keep";
	status: 200;
	deliver: Deliver;
	cursor: Cursor;
}
/**
 * A valid token is needed.
 */
export interface ResumeReauthenticate {
	outcome: "reauthenticate";
	code: ("token_missing" | "token_expired") | CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * Nothing is sent.
	 */
	deliver: 0;
	cursor: Cursor;
	/**
	 * What was wrong with the question, for the author of the host.
	 */
	detail?: string;
}
/**
 * A token that covers `required` goes on from the same cursor.
 */
export interface ResumeReauthorize {
	outcome: "reauthorize";
	code: "audience_not_covered" | "scope_not_covered";
	drift: Drift;
	session: "keep";
	status: RefusalStatus;
	deliver: Deliver;
	cursor: Cursor;
	held: Held;
	required: Required;
}
/**
 * The stream cannot be resumed; call again.
 */
export interface ResumeReissue {
	outcome: "reissue";
	code: "cursor_unknown" | "cursor_evicted" | "audience_not_covered" | "scope_not_covered";
	drift: Drift;
	session: "keep";
	status: RefusalStatus;
	/**
	 * Nothing is sent.
	 */
	deliver: 0;
	cursor: Cursor;
	held?: Held;
}
/**
 * A new session is needed.
 */
export interface ResumeReinitialize {
	outcome: "reinitialize";
	code:
		| (
				| "session_unknown"
				| "principal_drift"
				| "binding_drift"
				| "audience_not_covered"
				| "scope_not_covered"
		  )
		| CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * Nothing is sent.
	 */
	deliver: 0;
	cursor: Cursor;
	held?: Held;
}
/**
 * The request is refused.
 */
export interface ResumeRefuse {
	outcome: "refuse";
	code: ("session_required" | "cursor_ahead" | "undecided" | "invalid_facts" | "policy_fault") | CustomCode;
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * Nothing is sent.
	 */
	deliver: 0;
	cursor: Cursor;
	/**
	 * What was wrong with the question, for the author of the host.
	 */
	detail?: string;
}
/**
 * The event goes out.
 */
export interface DeliveryProceed {
	outcome: "proceed";
	code: "covered";
	/**
	 * @maxItems 0
	 */
	drift: string[];
	session: "keep";
	status: 200;
}
/**
 * A valid token is needed.
 */
export interface DeliveryReauthenticate {
	outcome: "reauthenticate";
	code: "token_missing" | "token_expired";
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * What was wrong with the question, for the author of the host.
	 */
	detail?: string;
}
/**
 * A token that covers `required` goes on from the same cursor.
 */
export interface DeliveryReauthorize {
	outcome: "reauthorize";
	code: "audience_not_covered" | "scope_not_covered";
	drift: Drift;
	session: "keep";
	status: RefusalStatus;
	held: Held;
	required: Required;
}
/**
 * The stream cannot be resumed; call again. No token of this server can have what is missing.
 */
export interface DeliveryReissue {
	outcome: "reissue";
	code: "audience_not_covered" | "scope_not_covered";
	drift: Drift;
	session: "keep";
	status: RefusalStatus;
	held: Held;
}
/**
 * A new session is needed.
 */
export interface DeliveryReinitialize {
	outcome: "reinitialize";
	code: "audience_not_covered" | "scope_not_covered";
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	held?: Held;
}
/**
 * The request is refused.
 */
export interface DeliveryRefuse {
	outcome: "refuse";
	code: "undecided" | "invalid_facts" | "policy_fault";
	drift: Drift;
	session: SessionFate;
	status: RefusalStatus;
	/**
	 * What was wrong with the question, for the author of the host.
	 */
	detail?: string;
}
/**
 * The question: what the adapter puts to the policy as `input`. Absent means absent: there are no nulls.
 */
export interface Facts {
	/**
	 * When the host asks.
	 */
	moment: "session" | "call" | "resume" | "delivery";
	/**
	 * NumericDate, seconds (RFC 7519 section 2).
	 */
	now: number;
	request: RequestFacts;
	session?: SessionFacts;
	presented?: Presented;
	/**
	 * call: the tool of a tools/call.
	 */
	tool?: string;
	/**
	 * call: any other method. session: the method, where there is one.
	 */
	rpc?: string;
	reference?: Label;
	event?: Event;
	cursor?: CursorFacts;
	pending?: Pending;
	/**
	 * resume: the distinct needs of the calls of that stream that are still running.
	 */
	open?: OpenNeed[];
}
/**
 * The request at hand.
 */
export interface RequestFacts {
	/**
	 * The HTTP method.
	 */
	method: "GET" | "POST" | "DELETE";
	transport: Transport;
	/**
	 * none: no session id was given.
	 */
	session: "none" | "unknown" | "known";
	/**
	 * Whether a call of the JSON-RPC id of this request is still open in the session.
	 */
	id?: "free" | "in_use";
	/**
	 * Whether the principal may start more work.
	 */
	quota?: "left" | "exceeded";
}
/**
 * The session record, only if the session is known.
 */
export interface SessionFacts {
	binding: Binding;
	transport: Transport;
	/**
	 * NumericDate, seconds.
	 */
	opened_at: number;
}
/**
 * What the session was opened with; an anonymous session has `anonymous` and nothing else. Further claims are those that `identity_claims` names.
 */
export interface Binding {
	anonymous?: true;
	iss?: string;
	sub?: string;
	client_id?: string;
	aud?: Audience;
	scope?: Strings;
	cnf?: Confirmation;
	[k: string]: unknown;
}
/**
 * RFC 7800: the key that the token is bound to.
 */
export interface Confirmation {
	[k: string]: unknown;
}
/**
 * The verified claims of the token of the request at hand; absent: no token.
 */
export interface Presented {
	iss: string;
	sub: string;
	client_id?: string;
	aud: Audience;
	scope: Strings;
	cnf?: Confirmation;
	/**
	 * NumericDate, seconds.
	 */
	exp: number;
	[k: string]: unknown;
}
/**
 * A need with what it is for: a tool, another method, or neither (session level).
 */
export interface Label {
	tool?: string;
	rpc?: string;
	aud: Strings;
	scope: Strings;
}
/**
 * delivery: the event that is about to be written.
 */
export interface Event {
	event_id?: string;
	request_id?: RequestId;
	tool?: string;
	rpc?: string;
	aud: Strings;
	scope: Strings;
}
export interface CursorFacts {
	last_event_id: string;
	/**
	 * What the event log knows of the cursor.
	 */
	position: "retained" | "evicted" | "ahead" | "foreign" | "unknown";
}
/**
 * The events after the cursor, folded: each distinct need, where it first appears.
 */
export interface Pending {
	count: number;
	/**
	 * The id of the last pending event; absent if there is none.
	 */
	last?: string;
	needs: PendingNeed[];
}
export interface PendingNeed {
	/**
	 * How many events are before it.
	 */
	index: number;
	event_id: string;
	/**
	 * The id of the event before it, or the cursor.
	 */
	before: string;
	request_id?: RequestId;
	tool?: string;
	rpc?: string;
	aud: Strings;
	scope: Strings;
}
export interface OpenNeed {
	request_id?: RequestId;
	tool?: string;
	rpc?: string;
	aud: Strings;
	scope: Strings;
}
/**
 * A decision table: facts, and what is wanted of the decision.
 */
export interface Table {
	title: string;
	description?: string;
	/**
	 * Policy data, as a merge patch (RFC 7396) over the data file beside the policies.
	 */
	data?: {
		[k: string]: unknown;
	};
	/**
	 * What the cases share: the `facts` of each are a merge patch over it.
	 */
	facts?: {
		[k: string]: unknown;
	};
	/**
	 * @minItems 1
	 */
	cases: Case[];
}
export interface Case {
	/**
	 * The behaviour, unique in its table.
	 */
	name: string;
	/**
	 * Policy data, as a merge patch over the table's.
	 */
	data?: {
		[k: string]: unknown;
	};
	/**
	 * Facts as `decide` takes them, with their `moment`; a merge patch over the table's.
	 */
	facts: {
		[k: string]: unknown;
	};
	/**
	 * The members of the decision that matter, each compared whole.
	 */
	want: {
		[k: string]: unknown;
	};
}
