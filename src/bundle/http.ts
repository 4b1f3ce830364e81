import { ResumeGuardError } from "../errors.ts";
import { LIMITS, tooLarge } from "./archive.ts";

export interface Download {
	readonly bytes: Uint8Array;
	/** The validator to ask with the next time (RFC 9110 section 8.8.3). */
	readonly etag: string | undefined;
}

const TIMEOUT_MS = 30_000;
const MAX_REDIRECTS = 5;
const MAX_ETAG = 1024;

/**
 * Fetches a bundle, no more of it than may be. Follows redirects within its origin only: the headers that were given
 * are for that one.
 *
 * @param etag of what is there already
 * @returns `undefined`: it has not changed
 * @throws {ResumeGuardError} `bundle_unavailable`, `bundle_too_large`
 */
export async function download(
	{ url, headers }: { readonly url: URL; readonly headers: Readonly<Record<string, string>> },
	etag: string | undefined,
	signal: AbortSignal,
): Promise<Download | undefined> {
	// Not AbortSignal.any() of a timeout: Node 20 may collect that one, and it never comes.
	const timeout = new AbortController();
	const timer = setTimeout(() => timeout.abort(new Error("no answer in time")), TIMEOUT_MS);
	const abort = () => timeout.abort(signal.reason);
	signal.addEventListener("abort", abort, { once: true });
	if (signal.aborted) abort();
	const init = {
		headers: {
			accept: "application/gzip, application/octet-stream",
			// Not gzip once more: what is counted are the bytes that come.
			"accept-encoding": "identity",
			...headers,
			...(etag !== undefined && { "if-none-match": etag }),
		},
		redirect: "manual",
		signal: timeout.signal,
	} as const;
	try {
		let at = url;
		let response = await fetch(at, init);
		for (let left = MAX_REDIRECTS; isRedirect(response); left -= 1) {
			await response.body?.cancel();
			if (left === 0) throw new Error("too many redirects");
			at = locationOf(response, at);
			response = await fetch(at, init);
		}
		if (response.status === 304 && etag !== undefined) return undefined;
		if (response.status !== 200) {
			await response.body?.cancel();
			throw new Error(`status ${response.status}`);
		}
		const validator = response.headers.get("etag");
		return {
			bytes: await readBody(response),
			etag: validator !== null && validator.length <= MAX_ETAG ? validator : undefined,
		};
	} catch (cause) {
		if (cause instanceof ResumeGuardError) throw cause;
		// Without the query, which may be what gives access.
		const where = `${url.origin}${url.pathname}`;
		throw new ResumeGuardError(
			"bundle_unavailable",
			`the bundle ${where} cannot be fetched: ${reasonOf(cause)}`,
			{
				cause,
			},
		);
	} finally {
		clearTimeout(timer);
		signal.removeEventListener("abort", abort);
	}
}

function isRedirect({ status, headers }: Response): boolean {
	return [301, 302, 303, 307, 308].includes(status) && headers.has("location");
}

function locationOf(response: Response, from: URL): URL {
	const location = response.headers.get("location") ?? "";
	if (!URL.canParse(location, from)) throw new Error("a redirect to no URL");
	const target = new URL(location, from);
	if (target.origin !== from.origin) throw new Error("a redirect to another origin");
	return target;
}

async function readBody(response: Response): Promise<Uint8Array> {
	const chunks: Uint8Array[] = [];
	let total = 0;
	if (response.body !== null) {
		// To leave the loop cancels the rest.
		for await (const chunk of response.body) {
			total += chunk.length;
			if (total > LIMITS.packed) throw tooLarge(`more than ${LIMITS.packed} bytes`);
			chunks.push(chunk);
		}
	}
	return Buffer.concat(chunks);
}

// fetch says "fetch failed"; what has failed is its cause.
function reasonOf(error: unknown): string {
	if (!(error instanceof Error)) return "unknown reason";
	const { code } = (error.cause ?? {}) as { code?: unknown };
	return typeof code === "string" ? code : error.message;
}
