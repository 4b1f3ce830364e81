import type { Facts } from "../generated/types.ts";
import { validateFacts } from "../generated/validators.js";
import type { DecisionEvent } from "../guard.ts";
import { escapeSegment } from "./pointer.ts";
import { canonicalJson, type Pseudonym } from "./pseudonym.ts";

/** A decision without what must not be kept. */
export interface MaskedDecision {
	readonly input: Readonly<Record<string, unknown>>;
	readonly result: Readonly<Record<string, unknown>>;
	readonly erased: string[];
	readonly masked: string[];
	/** `input` is a document of `schemas/facts.json` with all that the policy was asked. */
	readonly isWhole: boolean;
	/** A list was too long. */
	readonly isTruncated: boolean;
}

export interface MaskOptions {
	readonly pseudonym: Pseudonym;
	/** Identity claims to keep as they are; `sub` is never one. */
	readonly clearClaims: readonly string[];
}

/** Names are short; what is longer is replaced. */
const LONGEST_NAME = 256;
const LONGEST_INDICATOR = 2048;
/** More labels than this are left out, before anything is computed for them. */
const MOST_NEEDS = 500;
const MOST_STRINGS = 1_000;

/**
 * The mask that every record goes through: an allow-list of what the facts and decisions of the schemas have, so that
 * what comes in a question that is none is left out. Subjects, keys, ids of events and of requests, and the claims
 * that data names are replaced by pseudonyms, which keeps the facts such that they are decided alike: the policy
 * compares all of these for equality only.
 */
export function createMask({
	pseudonym,
	clearClaims,
}: MaskOptions): (event: DecisionEvent) => MaskedDecision {
	// Of the decision at hand.
	let erased: string[] = [];
	let masked: string[] = [];
	let subjects = new Set<string>();
	let isFacts = false;
	let isWhole = true;
	let isTruncated = false;

	const replace = (domain: string, value: string, at: string): string => {
		masked.push(at);
		return pseudonym(domain, value);
	};
	const hashed =
		(domain: string): Read =>
		(value, at) =>
			typeof value === "string" ? replace(domain, value, at) : undefined;
	// A subject may also be a client, or its own issuer: these are compared for equality only.
	const identity: Read = (value, at) => {
		if (typeof value !== "string") return undefined;
		return isName(value, LONGEST_INDICATOR) ? value : replace("text", value, at);
	};
	// These are looked up in the data, too: what stands for them is not found there.
	const nameOf =
		(longest: number): Read =>
		(value, at) => {
			if (typeof value !== "string") return undefined;
			if (isName(value, longest)) return value;
			isWhole = false;
			return replace("text", value, at);
		};
	const isName = (value: string, longest: number): boolean =>
		value.length <= longest && value.isWellFormed() && !subjects.has(value);
	const name = nameOf(LONGEST_NAME);
	const indicator = nameOf(LONGEST_INDICATOR);
	const number: Read = (value) => (typeof value === "number" && Number.isFinite(value) ? value : undefined);
	const one =
		(...values: readonly unknown[]): Read =>
		(value) =>
			values.includes(value) ? value : undefined;
	const requestId: Read = (value, at) =>
		typeof value === "number" ? number(value, at) : hashed("request")(value, at);
	const eventId = hashed("event");

	const listOf =
		(read: Read, most: number): Read =>
		(value, at) => {
			if (!Array.isArray(value)) return undefined;
			if (value.length > most) {
				isTruncated = true;
				return undefined;
			}
			const items = value.map((item, index) => read(item, `${at}/${index}`));
			return items.includes(undefined) ? undefined : items;
		};
	const indicators = listOf(indicator, MOST_STRINGS);
	const textOr =
		(read: Read): Read =>
		(value, at) =>
			(typeof value === "string" ? indicator : read)(value, at);

	const leaveOut = (at: string): void => {
		isWhole = false;
		erased.push(at);
	};
	const object =
		(readers: Readonly<Record<string, Read>>, others?: (key: string) => Read | undefined): Read =>
		(value, at) => {
			if (!isRecord(value)) return undefined;
			const kept: Fields = {};
			for (const [key, member] of Object.entries(value)) {
				if (member === undefined) continue;
				const known = Object.hasOwn(readers, key) ? readers[key] : undefined;
				const read = known ?? others?.(key);
				if (read === undefined) {
					// Not even the name of what is not known is kept.
					isWhole = false;
					continue;
				}
				const place = `${at}/${known === undefined ? escapeSegment(key) : key}`;
				const mayStay = read(member, place);
				if (mayStay === undefined) leaveOut(place);
				else setOwn(kept, key, mayStay);
			}
			return kept;
		};

	const sealed =
		(domain: string): Read =>
		(value, at) =>
			replace(domain, canonicalJson(value), at);
	// RFC 7800 section 3, RFC 8705 section 3.1, RFC 9449 section 6.1.
	const confirmations = new Set(["jwk", "jwe", "kid", "jku", "x5t#S256", "jkt"]);
	const confirmation: Read = (value, at) => {
		if (!isRecord(value)) return undefined;
		const isKnown = Object.keys(value).every((key) => confirmations.has(key));
		if (!isKnown) return { hmac: replace("cnf", canonicalJson(value), at) };
		return object({}, (key) => sealed(`cnf ${key}`))(value, at);
	};
	const principal: Record<string, Read> = {
		iss: identity,
		sub: hashed("sub"),
		client_id: identity,
		aud: textOr(indicators),
		scope: textOr(indicators),
		cnf: confirmation,
	};
	// Claims beside those are there because data names them; in a question that is none, because they are in the token.
	const claimsOf = (readers: Readonly<Record<string, Read>>): Read => {
		const ofFacts = object({ ...principal, ...readers }, (key) => {
			if (key.length > LONGEST_NAME) return undefined;
			return clearClaims.includes(key) ? (value) => value : sealed(`claim ${key}`);
		});
		const ofQuestion = object({ ...principal, ...readers, azp: identity, scp: textOr(indicators) });
		return (value, at) => (isFacts ? ofFacts : ofQuestion)(value, at);
	};

	const label: Record<string, Read> = { tool: name, rpc: name, aud: indicators, scope: indicators };
	const need = { ...label, request_id: requestId };
	const moved = { event_id: eventId, before: eventId };
	const transport = one("sse", "streamable-http");
	const pending = object({
		count: number,
		last: eventId,
		needs: listOf(object({ ...need, ...moved, index: number }), MOST_NEEDS),
	});
	const events = listOf(object({ ...need, id: eventId }), MOST_NEEDS);
	const facts = object({
		moment: one("session", "call", "resume", "delivery"),
		now: number,
		request: object({
			method: one("GET", "POST", "DELETE"),
			transport,
			session: one("none", "unknown", "known"),
			id: one("free", "in_use"),
			quota: one("left", "exceeded"),
		}),
		session: object({ binding: claimsOf({ anonymous: one(true) }), transport, opened_at: number }),
		presented: claimsOf({ exp: number }),
		tool: name,
		rpc: name,
		reference: object(label),
		event: object({ ...need, event_id: eventId }),
		cursor: object({
			last_event_id: eventId,
			position: one("retained", "evicted", "ahead", "foreign", "unknown"),
		}),
		pending: (value, at) => (Array.isArray(value) ? events : pending)(value, at),
		open: listOf(object(need), MOST_NEEDS),
	});

	const rights = object({ aud: indicators, scope: indicators });
	const decision = object({
		outcome: one("proceed", "reauthenticate", "reauthorize", "reinitialize", "reissue", "refuse"),
		code: (value) => (isCode(value) ? value : undefined),
		deliver: number,
		cursor: eventId,
		held: object({ tool: name, rpc: name, event_id: eventId, request_id: requestId, missing: rights }),
		required: rights,
		drift: listOf(name, MOST_STRINGS),
		session: one("keep", "end"),
		status: number,
		label: object(label),
		detail: (value) => (typeof value === "string" ? maskDetail(value) : undefined),
	});

	const read = (reader: Read, value: unknown, at: string): Fields => {
		const kept = reader(value, at);
		if (isRecord(kept)) return kept;
		leaveOut(at);
		return {};
	};
	return ({ moment, facts: asked, decision: decided }) => {
		erased = [];
		masked = [];
		isWhole = true;
		isTruncated = false;
		isFacts = validateFacts(asked) && (asked as Facts).moment === moment;
		subjects = subjectsOf(asked);
		const input = { ...read(facts, asked, "/input"), moment };
		// What is left out of the decision is not missing from the facts.
		const hasAll = isFacts && isWhole;
		const result = read(decision, decided, "/result");
		return { input, result, erased, masked, isWhole: hasAll, isTruncated };
	};
}

// An own property whatever its name is.
function setOwn(to: Fields, key: string, value: unknown): void {
	if (key !== "__proto__") to[key] = value;
	else Object.defineProperty(to, key, { value, enumerable: true, configurable: true, writable: true });
}

type Fields = Record<string, unknown>;
/** A member as it may be kept; `undefined`: it may not. */
type Read = (value: unknown, at: string) => unknown;

/** A code of the schema, or of the operator's own rules. */
export function isCode(value: unknown): value is string {
	return typeof value === "string" && value.length <= LONGEST_NAME && /^(?:custom:)?[a-z0-9_]+$/.test(value);
}

function subjectsOf(facts: unknown): Set<string> {
	const { presented, session } = isRecord(facts) ? facts : ({} as Fields);
	const claims = [presented, isRecord(session) ? session.binding : undefined];
	const subjects = claims.map((of) => (isRecord(of) ? of.sub : undefined));
	return new Set(subjects.filter((subject) => typeof subject === "string"));
}

// `/place: rule (name)`. Names of members that the schemas do not have come from the question.
function maskDetail(detail: string): string {
	const [, place = "", rule = ""] =
		/^((?:\/[^/:]*)*)(?::? ?)([^(]*)/.exec(detail.slice(0, LONGEST_NAME)) ?? [];
	const segments = place
		.split("/")
		.map((segment) => (PLACES.has(segment) || /^\d+$/.test(segment) ? segment : "…"));
	return `${segments.join("/")}${place === "" ? "" : ": "}${rule.trim()}`;
}

const PLACES = new Set(
	` presented session binding iss sub client_id azp aud scope scp cnf exp moment now request method transport id quota
	opened_at tool rpc reference event event_id request_id cursor last_event_id position pending count last needs index
	before open anonymous`.split(/\s+/),
);

function isRecord(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
