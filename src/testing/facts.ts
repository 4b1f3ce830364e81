import type { DeliveryQuestion, Questions, ResumeQuestion, SessionInput } from "../facts.ts";
import type { EventInput, NeedInput } from "../fold.ts";
import type { Label, Pending, PolicyData, Presented, RequestFacts, RequestId } from "../generated/types.ts";
import type { Moment } from "../policy.ts";
import { below } from "../resources.ts";
import { mergePatch } from "../tables.ts";

/** Claims to lay over the usual ones: `null` takes one away, any other claim may be added. */
export interface ClaimChanges {
	readonly iss?: string | null;
	readonly sub?: string | null;
	readonly client_id?: string | null;
	readonly aud?: string | readonly string[] | null;
	readonly scope?: string | readonly string[] | null;
	readonly cnf?: Readonly<Record<string, unknown>> | null;
	/** NumericDate, seconds. */
	readonly exp?: number | null;
	readonly [claim: string]: unknown;
}

/** What differs from the usual question: merged into it, objects into objects, lists as a whole. */
interface Changes {
	/** NumericDate, seconds. */
	readonly now?: number;
	readonly request?: { readonly [K in keyof RequestFacts]?: RequestFacts[K] };
	/** The session record; it is there if, and only if, `request.session` is `known`. */
	readonly session?: {
		readonly binding?: ClaimChanges | { readonly anonymous: true };
		readonly transport?: SessionInput["transport"];
		readonly opened_at?: number;
	};
	/** The claims of the token; `null`: no token. */
	readonly presented?: ClaimChanges | null;
}

export interface SessionChanges extends Changes {
	readonly rpc?: string | null;
}

/** A call names one of the three. */
export type CallChanges = Changes &
	(
		| { readonly tool: string; readonly rpc?: never; readonly reference?: never }
		| { readonly rpc: string; readonly tool?: never; readonly reference?: never }
		| { readonly reference: Label; readonly tool?: never; readonly rpc?: never }
	);

export interface ResumeChanges extends Changes {
	readonly cursor?: { readonly [K in keyof ResumeQuestion["cursor"]]?: ResumeQuestion["cursor"][K] };
	readonly pending?: readonly EventInput[] | Pending;
	readonly open?: readonly NeedInput[];
}

export interface DeliveryChanges extends Changes {
	readonly event: DeliveryQuestion["event"];
}

/** The facts of a moment, as `decide` and decision tables take them; what is left is the guard's question. */
export type FactsOf<M extends Moment> = Questions[M] & { readonly moment: M };

/** Makes questions in which all is well but what you say. */
export interface FactsBuilder {
	/** By default: the owner of a session lists its tools. */
	session(changes?: SessionChanges): FactsOf<"session">;
	/** By default: the owner of a session calls with a token that covers everything. */
	call(changes: CallChanges): FactsOf<"call">;
	/** By default: the owner of a session comes back with cursor 41; nothing is pending or open. */
	resume(changes?: ResumeChanges): FactsOf<"resume">;
	/** By default: the owner of a session, under a token that covers everything. */
	delivery(changes: DeliveryChanges): FactsOf<"delivery">;
	/** An event of a tool or a method, labelled as the data maps it. */
	event(
		id: string,
		of: { readonly tool: string; readonly rpc?: never } | { readonly rpc: string; readonly tool?: never },
		request_id?: RequestId,
	): EventInput;
}

type Data = Pick<PolicyData, "resources"> &
	Partial<Pick<PolicyData, "tools" | "methods" | "session_need" | "coverage">>;

/** NumericDate, seconds. */
const NOW = 1_796_000_000;

const SHARED = ["now", "request", "session", "presented"];

const PACKAGED: Data = {
	resources: ["https://mcp.example.com"],
	tools: {
		search: { aud: ["https://mcp.example.com/tools/search"], scope: [] },
		fetch: { aud: ["https://mcp.example.com/tools/fetch"], scope: [] },
	},
	methods: { "resources/read": { aud: ["https://mcp.example.com"], scope: [] } },
	coverage: { "https://mcp.example.com": ["https://mcp.example.com/tools/*"] },
};

/**
 * A builder of facts for some policy data: by default the session was opened, and the request comes, with a token that
 * covers all of it. Throws a `TypeError` for members that a moment does not have.
 *
 * @param data default: that of this package
 */
export function createFacts(data: Data = PACKAGED): FactsBuilder {
	const claims = { iss: "https://as.example.com", sub: "alice", client_id: "desktop", ...coveringAll(data) };
	const usual = (method: RequestFacts["method"]) => ({
		now: NOW,
		request: { method, transport: "streamable-http", session: "known" },
		session: { binding: claims, transport: "streamable-http", opened_at: NOW - 600 },
		presented: { ...claims, exp: NOW + 3600 },
	});

	return {
		session: (changes = {}) => build("session", ["rpc"], { ...usual("POST"), rpc: "tools/list" }, changes),
		call: (changes) => build("call", ["tool", "rpc", "reference"], usual("POST"), changes),
		resume(changes = {}) {
			const cursor = { last_event_id: "41", position: "retained" };
			const resume = { ...usual("GET"), cursor, pending: [], open: [] };
			return build("resume", ["cursor", "pending", "open"], resume, changes);
		},
		delivery: (changes) => build("delivery", ["event"], usual("GET"), changes),
		event(id, { tool, rpc }, request_id) {
			const needs = (tool === undefined ? data.methods : data.tools) ?? {};
			const name = tool ?? rpc ?? "";
			const need = [name, "*"].flatMap((key) => (Object.hasOwn(needs, key) ? [needs[key]] : []))[0];
			if (need === undefined) throw new TypeError(`facts.event: the data does not map ${name}`);
			return {
				id,
				...(tool === undefined ? { rpc: name } : { tool }),
				...(request_id !== undefined && { request_id }),
				aud: [...need.aud],
				scope: [...need.scope],
			};
		},
	};
}

/** A builder of facts for the data in this package. */
export const facts: FactsBuilder = createFacts();

function build<M extends Moment>(
	moment: M,
	own: readonly string[],
	usual: object,
	changes: Changes,
): FactsOf<M> {
	const unknown = Object.keys(changes).find((name) => !SHARED.includes(name) && !own.includes(name));
	if (unknown !== undefined) throw new TypeError(`facts.${moment}: there is no \`${unknown}\``);
	const built = mergePatch({ moment, ...usual }, changes);
	const { request, session } = built as { request: RequestFacts; session?: { binding: object } };
	if (request.session !== "known") delete built.session;
	// A binding of an anonymous session has no claims.
	else if (session !== undefined && "anonymous" in session.binding) session.binding = { anonymous: true };
	return structuredClone(built) as unknown as FactsOf<M>;
}

/** The audiences and scopes of a token that covers all that data maps. */
function coveringAll(data: Data): Pick<Presented, "aud" | "scope"> {
	const needs = [...Object.values(data.tools ?? {}), ...Object.values(data.methods ?? {})];
	if (data.session_need !== undefined) needs.push(data.session_need);
	const entries = data.resources.flatMap((resource) =>
		Object.hasOwn(data.coverage ?? {}, resource) ? (data.coverage?.[resource] ?? []) : [],
	);
	const covered = (resource: string) =>
		entries.some((entry) => entry === resource || below(entry)(resource)) ||
		data.resources.includes(resource);
	const others = needs.flatMap(({ aud }) => aud).filter((resource) => !covered(resource));
	return {
		aud: [...new Set([...data.resources, ...others])],
		scope: [...new Set(needs.flatMap(({ scope }) => scope))],
	};
}
