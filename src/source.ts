import { activate } from "./bundle/activate.ts";
import { LIMITS, tooLarge } from "./bundle/archive.ts";
import { readBounded } from "./bundle/files.ts";
import { createFloor } from "./bundle/floor.ts";
import { type Attempt, followFiles, followUrl } from "./bundle/follow.ts";
import { download } from "./bundle/http.ts";
import { type BundleOptions, readOptions } from "./bundle/options.ts";
import { completeData, parseData, readDataText } from "./data.ts";
import { ResumeGuardError, type ResumeGuardErrorCode } from "./errors.ts";
import type { PolicyData } from "./generated/types.ts";
import { createCompiler, type PolicySource, packagedPolicy, readPolicy } from "./policy.ts";
import { digestOf, loadRules, type Rules } from "./rules.ts";

/** What says where a guard's rules come from: `data`, with or without a `policy`, or a `bundle`. */
export interface RulesOptions {
	/** Policy data, or the path of a file like `policies/mcp/data.json`. */
	readonly data?: PolicyData | string;
	/** The policy: Wasm that OPA built, as bytes, a compiled module or a path. Default: the one in this package. */
	readonly policy?: PolicySource;
	/** A bundle of OPA with both, as a path, a URL, or with options. */
	readonly bundle?: string | URL | BundleOptions;
	/**
	 * Looks for changes: of the files that were given several times a second, of a URL as `bundle.polling` says. What is
	 * good takes effect as a whole; of what is not, `status` tells, and the last good rules stay. Default: false.
	 */
	readonly watch?: boolean;
}

/** Which rules are in force, and what became of later ones. */
export interface RulesStatus {
	/** Of the policy and the data in force. */
	readonly revision: string;
	readonly activatedAt: Date;
	/** When rules were last read, or asked for. */
	readonly lastAttempt: Date;
	/** Why what was there at the last attempt is not in force; absent: it is. */
	readonly lastError?: { readonly code: ResumeGuardErrorCode; readonly message: string };
	/** Of the bundle in force, if its manifest has one. */
	readonly sequence?: number;
}

/** Where a guard's rules come from. */
export interface RulesSource {
	readonly first: Rules;
	/**
	 * Called once: `swap` takes each later set of rules that is good, `fail` hears why one is not, once for each reason.
	 * Neither may throw.
	 */
	start(swap: (next: Rules) => void, fail: (error: ResumeGuardError) => void): void;
	status(): RulesStatus;
	close(): void;
}

/** What was read, and how rules are made of it. */
interface Material {
	/** Two of one digest make the same rules. */
	readonly digest: string;
	/** HTTP's validator. */
	readonly etag?: string | undefined;
	activate(): Promise<Rules & { readonly sequence?: number | undefined }>;
}

interface Origin {
	/** @returns `undefined`: what is there has this validator */
	read(etag: string | undefined, signal: AbortSignal): Promise<Material | undefined>;
	/** Returns how to stop. */
	follow(attempt: Attempt): () => void;
}

/** @throws {ResumeGuardError} any of its codes that is about a policy, its data or a bundle */
export async function openSource(options: RulesOptions): Promise<RulesSource> {
	const { data, policy, bundle } = options;
	const origin = bundle === undefined ? await looseOrigin(data, policy) : await bundleOrigin(bundle);
	const closing = new AbortController();
	const found = await origin.read(undefined, closing.signal);
	if (found === undefined) throw new ResumeGuardError("bundle_unavailable", "there is no bundle");
	const first = await found.activate();

	let active = { rules: first, digest: found.digest, etag: found.etag, at: new Date() };
	let lastAttempt = active.at;
	let refused: { readonly digest: string; readonly error: unknown } | undefined;
	let lastError: ResumeGuardError | undefined;
	let stop = () => {};

	/** @returns what is to be in force; the same as now where nothing has changed */
	async function next(again: boolean): Promise<typeof active> {
		const material = await origin.read(active.etag, closing.signal);
		if (material === undefined) return active;
		const { digest, etag } = material;
		if (digest === active.digest) return { ...active, etag };
		if (digest === refused?.digest && !again) throw refused.error;
		try {
			return { rules: await material.activate(), digest, etag, at: new Date() };
		} catch (error) {
			refused = { digest, error };
			throw error;
		}
	}

	return {
		first,
		start(swap, fail) {
			if (options.watch !== true) return;
			stop = origin.follow(async (again) => {
				lastAttempt = new Date();
				try {
					const { rules } = active;
					const found = await next(again);
					if (closing.signal.aborted) return true;
					active = found;
					refused = undefined;
					lastError = undefined;
					if (found.rules !== rules) swap(found.rules);
					return true;
				} catch (cause) {
					if (closing.signal.aborted) return true;
					const error = cause instanceof ResumeGuardError ? cause : unexpected(cause);
					const isNew = error.code !== lastError?.code || error.message !== lastError.message;
					lastError = error;
					if (isNew) fail(error);
					return false;
				}
			});
		},
		status() {
			const { rules, at } = active;
			return {
				revision: rules.revision,
				activatedAt: at,
				lastAttempt,
				...(lastError !== undefined && { lastError: { code: lastError.code, message: lastError.message } }),
				...(rules.sequence !== undefined && { sequence: rules.sequence }),
			};
		},
		close() {
			closing.abort();
			stop();
		},
	};
}

function unexpected(cause: unknown): ResumeGuardError {
	return new ResumeGuardError("policy_invalid", "the rules cannot be loaded", { cause });
}

async function looseOrigin(
	data: PolicyData | string | undefined,
	policy: PolicySource | undefined,
): Promise<Origin> {
	if (data === undefined) throw new TypeError("createResumeGuard: there is neither `data` nor a `bundle`");
	// The caller may go on to change an object.
	const fixed = typeof data === "string" ? undefined : completeData(data);
	const compile = createCompiler();
	const encoder = new TextEncoder();

	return {
		async read() {
			const text = typeof data === "string" ? await readDataText(data) : "";
			const wasm = await bytesOf(policy);
			const parts = [encoder.encode(text), ...(wasm === undefined ? [] : [wasm])];
			return {
				digest: await digestOf(parts),
				activate: async () =>
					loadRules({
						...(typeof data === "string" ? { data: parseData(data, text), path: data } : { data: fixed }),
						policy: policy === undefined || wasm === undefined ? policy : await compile(wasm),
						wasm,
					}),
			};
		},
		follow: (attempt) =>
			followFiles(
				[data, policy].filter((given) => typeof given === "string"),
				attempt,
			),
	};
}

/** @returns `undefined`: a module does not tell */
async function bytesOf(policy: PolicySource | undefined): Promise<Uint8Array | undefined> {
	if (policy === undefined) return packagedPolicy();
	if (typeof policy === "string") return readPolicy(policy);
	if (policy instanceof WebAssembly.Module) return undefined;
	return new Uint8Array(policy);
}

async function bundleOrigin(options: string | URL | BundleOptions): Promise<Origin> {
	const settings = await readOptions(options);
	const { source, headers, polling } = settings;
	const floor = createFloor(settings.floorFile);
	const compile = createCompiler();
	const materialOf = async (bytes: Uint8Array, etag?: string): Promise<Material> => ({
		digest: await digestOf([bytes]),
		etag,
		activate: () => activate(bytes, settings, floor, compile),
	});

	if ("path" in source) {
		const { path } = source;
		const tooMuch = () => tooLarge(`more than ${LIMITS.packed} bytes`);
		return {
			read: async () => materialOf(await readBounded(path, "the bundle", LIMITS.packed, tooMuch)),
			follow: (attempt) => followFiles([path], attempt),
		};
	}
	return {
		async read(etag, signal) {
			const got = await download({ url: source.url, headers }, etag, signal);
			return got && materialOf(got.bytes, got.etag);
		},
		follow: (attempt) => followUrl(polling, attempt),
	};
}
