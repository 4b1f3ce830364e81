import { type BundleKey, readKey, type VerificationKey } from "./keys.ts";

/** A bundle of OPA with the policy and its data: where it is, and what it has to be. */
export interface BundleOptions {
	/** The path of a `bundle.tar.gz`, or its URL: https, or http on a loopback host. */
	readonly source: string | URL;
	/**
	 * How its signature is verified (OPA, "Bundle Signing"). With it an unsigned bundle is refused, without it a signed
	 * one, since nobody can say whether that signature is good. `"skip"`: signatures are not looked at.
	 */
	readonly verification?: BundleVerification | "skip";
	/** Refuses a bundle that is older than one that was active before. Default: not. */
	readonly rollback?: {
		/**
		 * A file of this host, which keeps the highest sequence that was active. A bundle has its sequence in the metadata
		 * of its manifest: `{"metadata": {"mcp_resume_guard": {"sequence": 7}}}`.
		 */
		readonly floorFile: string;
	};
	/** Headers of the requests to its URL, such as `authorization`. */
	readonly headers?: Readonly<Record<string, string>>;
	/** Between requests to its URL, with `watch`. Default: 60 to 120 seconds, as in OPA. */
	readonly polling?: { readonly minDelaySeconds: number; readonly maxDelaySeconds: number };
}

export interface BundleVerification {
	/** Keys by their ids, as under `keys` in OPA's configuration. */
	readonly keys: Readonly<Record<string, BundleKey>>;
	/** The key to use, whatever the signature says. Default: the one that the signature names. */
	readonly keyid?: string;
	/** The scope that the signature must have. Default: the key's. */
	readonly scope?: string;
}

/** `BundleOptions`, looked through. */
export interface BundleSettings {
	readonly source: { readonly path: string } | { readonly url: URL };
	readonly verification: Verification | "skip" | undefined;
	readonly floorFile: string | undefined;
	readonly headers: Readonly<Record<string, string>>;
	/** Seconds. */
	readonly polling: { readonly min: number; readonly max: number };
}

export interface Verification {
	readonly keys: ReadonlyMap<string, VerificationKey>;
	readonly keyid: string | undefined;
	readonly scope: string | undefined;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** @throws TypeError */
export async function readOptions(given: string | URL | BundleOptions): Promise<BundleSettings> {
	const isSource = typeof given === "string" || given instanceof URL;
	const options: BundleOptions = isSource ? { source: given } : Object(given);
	const { source: named, verification, rollback, headers, polling, ...others } = options;
	noOthers("bundle", others);
	const source = await readSource(named);
	if ("path" in source && (headers !== undefined || polling !== undefined)) {
		throw misuse("`headers` and `polling` are for a bundle that has a URL");
	}
	return {
		source,
		verification:
			verification === undefined || verification === "skip"
				? verification
				: await readVerification(verification),
		floorFile: rollback === undefined ? undefined : readFloorFile(rollback),
		headers: readHeaders(headers ?? {}),
		polling: readPolling(polling ?? { minDelaySeconds: 60, maxDelaySeconds: 120 }),
	};
}

async function readSource(source: unknown): Promise<BundleSettings["source"]> {
	if (typeof source === "string" && source !== "" && !/^(?:https?|file):/i.test(source))
		return { path: source };
	// Without the URL in the message: it may have a secret in it.
	if (!(source instanceof URL) && !(typeof source === "string" && URL.canParse(source))) {
		throw misuse("`source` must be a path or a URL");
	}
	const url = new URL(source);
	if (url.protocol === "file:") {
		const { fileURLToPath } = await import("node:url");
		return { path: fileURLToPath(url) };
	}
	if (url.protocol !== "https:" && !(url.protocol === "http:" && LOOPBACK.test(url.hostname))) {
		throw misuse("it is fetched over https, or from a loopback host");
	}
	if (url.username !== "" || url.password !== "") throw misuse("credentials belong into `headers`");
	return { url };
}

async function readVerification(given: BundleVerification): Promise<Verification> {
	const { keys: named, keyid, scope, ...others } = Object(given) as BundleVerification;
	noOthers("verification", others);
	const keys = new Map<string, VerificationKey>();
	for (const [id, key] of Object.entries(Object(named))) keys.set(id, await readKey(id, key as BundleKey));
	if (keys.size === 0) throw misuse("`verification` has no `keys`");
	if (keyid !== undefined && !keys.has(keyid)) throw misuse("`verification.keyid` is none of its `keys`");
	if (scope !== undefined && typeof scope !== "string") throw misuse("`verification.scope` must be a string");
	return { keys, keyid, scope };
}

function readFloorFile(given: NonNullable<BundleOptions["rollback"]>): string {
	const { floorFile, ...others } = Object(given) as NonNullable<BundleOptions["rollback"]>;
	noOthers("rollback", others);
	if (typeof floorFile !== "string" || floorFile === "") throw misuse("`rollback.floorFile` must be a path");
	return floorFile;
}

function readHeaders(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
	try {
		return Object.fromEntries(new Headers(given));
	} catch {
		// Without the cause, which quotes the value.
		throw misuse("`headers` are not headers");
	}
}

function readPolling(given: NonNullable<BundleOptions["polling"]>): BundleSettings["polling"] {
	const { minDelaySeconds: min, maxDelaySeconds: max, ...others } = Object(given) as typeof given;
	noOthers("polling", others);
	if (!(min > 0 && min <= max && max <= 86_400)) {
		throw misuse("`polling` must have `minDelaySeconds` above 0 and `maxDelaySeconds` from there to a day");
	}
	return { min, max };
}

function noOthers(where: string, others: object): void {
	const [unknown] = Object.keys(others);
	if (unknown !== undefined) throw misuse(`there is no option \`${unknown}\` of ${where}`);
}

function misuse(what: string): TypeError {
	return new TypeError(`createResumeGuard: \`bundle\`: ${what}`);
}
