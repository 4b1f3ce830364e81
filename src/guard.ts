import type { CompletePolicyData } from "./data.ts";
import { decideBy, type Moments, momentsOf, type PolicyFault } from "./decide.ts";
import type { Decisions } from "./decision.ts";
import type { ResumeGuardError } from "./errors.ts";
import type { Questions } from "./facts.ts";
import type { Facts } from "./generated/types.ts";
import { createListeners } from "./listeners.ts";
import type { Moment } from "./policy.ts";
import { openSource, type RulesOptions, type RulesStatus } from "./source.ts";

export type { Moment, Moments, PolicyFault };

export interface ResumeGuardOptions extends RulesOptions {
	/** Hears why a decision became `policy_fault`: the policy trapped, or its answer was not sound. Default: `console.error`. */
	readonly onFault?: (fault: PolicyFault) => void;
	/** Hears of each decision, just after it: for a log, a candidate policy, metrics. It must not take long. */
	readonly onDecision?: (event: DecisionEvent) => void;
	/** With `watch`: hears why later rules are not in force, once for each reason. Default: `console.error`. */
	readonly onReloadError?: (error: ResumeGuardError) => void;
}

/** A decision with what it was made from. */
export interface DecisionEvent {
	readonly moment: Moment;
	/** What the policy was asked, or what the host asked if that was no question. Claims and all: mask it before it is kept. */
	readonly facts: Facts | Questions[Moment];
	readonly decision: Decisions[Moment];
	/** Of the policy and the data that decided. */
	readonly revision: string;
	/** How long it took, in milliseconds. */
	readonly duration: number;
}

/**
 * Facts in, decision out, for the four moments at which a host asks. Synchronous, no I/O, never throws: what cannot be
 * decided is refused (`invalid_facts`, `policy_fault`).
 */
export interface ResumeGuard extends Moments {
	/** The same four, for a question whose answer refuses nobody (which tools to list): `onDecision` does not hear of it. */
	readonly probe: Moments;
	/** The policy data in force, complete. */
	readonly data: CompletePolicyData;
	/** Of the policy and the data in force. A decision is by one revision, whole. */
	readonly revision: string;
	/** Hears of each new revision, once it is in force; returns how to stop listening. */
	onRevision(listener: () => void): () => void;
	/** Which policy and data are in force since when, and what became of later ones. */
	status(): RulesStatus;
	/** Stops looking for new revisions; it decides on. */
	close(): void;
}

/**
 * Creates a guard: loads the policy and its data, and holds them to their contracts.
 *
 * @throws {TypeError} for an option of the wrong type, or that does not go with another
 * @throws {ResumeGuardError} `policy_invalid`, `data_invalid`, `file_unreadable`; with a `bundle` also the codes that
 *   begin with `bundle_`, `table_invalid`, and `file_unwritable` for its floor
 */
export async function createResumeGuard(options: ResumeGuardOptions): Promise<ResumeGuard> {
	assertOptions(options);
	const source = await openSource(options);
	let rules = source.first;
	const listeners = createListeners<[]>();
	source.start(
		(next) => {
			rules = next;
			listeners.tell();
		},
		(error) => {
			try {
				(options.onReloadError ?? reportReloadError)(error);
			} catch (thrown) {
				reportReloadError(error);
				console.error("mcp-resume-guard: onReloadError threw", thrown);
			}
		},
	);
	const { onDecision } = options;
	const onFault = (fault: PolicyFault) => {
		try {
			(options.onFault ?? reportFault)(fault);
		} catch (error) {
			reportFault(fault);
			console.error("mcp-resume-guard: onFault threw", error);
		}
	};

	function decide<M extends Moment>(moment: M, question: Questions[M]): Decisions[M] {
		return decideBy(rules, moment, question, onFault).decision;
	}

	function decideAloud<M extends Moment>(moment: M, question: Questions[M]): Decisions[M] {
		if (onDecision === undefined) return decide(moment, question);
		const start = performance.now();
		const { revision } = rules;
		const { facts, decision } = decideBy(rules, moment, question, onFault);
		try {
			onDecision({ moment, facts, decision, revision, duration: performance.now() - start });
		} catch (error) {
			console.error("mcp-resume-guard: onDecision threw", error);
		}
		return decision;
	}

	return {
		...momentsOf(decideAloud),
		probe: momentsOf(decide),
		get data() {
			return rules.data;
		},
		get revision() {
			return rules.revision;
		},
		onRevision: listeners.add,
		status: source.status,
		close: source.close,
	};
}

function reportFault({ moment, reason, cause }: PolicyFault): void {
	console.error(`mcp-resume-guard: policy_fault at ${moment}: ${reason}`, cause ?? "");
}

function reportReloadError({ code, message }: ResumeGuardError): void {
	console.error(`mcp-resume-guard: not reloaded, the last good policy stays: ${code}: ${message}`);
}

function assertOptions(options: unknown): asserts options is ResumeGuardOptions {
	const { data, policy, bundle, watch, onFault, onDecision, onReloadError, ...others } = (options ??
		{}) as Record<string, unknown>;
	const [unknown] = Object.keys(others);
	if (unknown !== undefined) throw misuse(`there is no option \`${unknown}\``);
	if (bundle === undefined) assertLoose(data, policy);
	else if (data !== undefined || policy !== undefined) {
		throw misuse("a `bundle` has data and policy in it: `data` and `policy` do not go with it");
	}
	if (watch !== undefined && typeof watch !== "boolean") throw misuse("`watch` must be a boolean");
	if (watch === true && [data, policy].every((given) => typeof given !== "string") && bundle === undefined) {
		throw misuse("`watch` needs a path or a URL to look at");
	}
	if (watch !== true && Object(bundle).polling !== undefined) throw misuse("`bundle.polling` needs `watch`");
	for (const [name, listener] of Object.entries({ onFault, onDecision, onReloadError })) {
		if (listener !== undefined && typeof listener !== "function")
			throw misuse(`\`${name}\` must be a function`);
	}
}

function assertLoose(data: unknown, policy: unknown): void {
	if (typeof data !== "string" && (typeof data !== "object" || data === null)) {
		throw misuse("`data` must be policy data or the path of a file");
	}
	const isPolicy =
		policy === undefined ||
		typeof policy === "string" ||
		policy instanceof Uint8Array ||
		policy instanceof ArrayBuffer ||
		policy instanceof WebAssembly.Module;
	if (!isPolicy) throw misuse("`policy` must be bytes, a WebAssembly.Module or a path");
}

function misuse(what: string): TypeError {
	return new TypeError(`createResumeGuard: ${what}`);
}
