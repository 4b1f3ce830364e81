import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { ResumeGuardError } from "../errors.ts";
import type { DecisionLogEntry } from "./record.ts";
import type { DecisionLogSink } from "./sink.ts";

export interface HttpSinkOptions {
	/** The service: records are posted to `<url>/logs`. https, or http on loopback. */
	readonly url: string | URL;
	/** OPA's `partition_name`: then they are posted to `<url>/logs/<partition>`. */
	readonly partition?: string;
	/** The value of the Authorization header, asked for each upload. */
	readonly authorization?: () => string | Promise<string>;
	/** How many bytes of records one upload may have before it is compressed. Default: 256 KiB. */
	readonly batchBytes?: number;
	/** How long records wait for more before they are uploaded, in seconds. Default: 5. */
	readonly delay?: number;
	/** How long an upload may take, in seconds. Default: 10. */
	readonly timeout?: number;
	/** Certificates to trust for https, in PEM, in place of those of Node. */
	readonly ca?: string | Uint8Array;
}

const compress = promisify(gzip);

/**
 * Uploads records to OPA's decision-log API: a JSON array, compressed with gzip
 * (https://www.openpolicyagent.org/docs/management-decision-logs). What is not answered with 2xx is sent again, so that
 * a record may come twice: `decision_id` tells. Only 400 and 422 say that the records are no good, and lose them; 413 has
 * them sent in smaller batches.
 */
export function httpSink(options: HttpSinkOptions): DecisionLogSink {
	const { batchBytes = 256 * 1024, delay = 5, timeout = 10, authorization } = options;
	for (const [name, value] of Object.entries({ batchBytes, delay, timeout })) {
		if (!(typeof value === "number" && value >= 0 && Number.isFinite(value))) {
			throw new TypeError(`httpSink: \`${name}\` must be a number`);
		}
	}
	if (authorization !== undefined && typeof authorization !== "function") {
		throw new TypeError("httpSink: `authorization` must be a function");
	}
	const url = urlOf(options);
	/** What the service takes at once, as far as is known. */
	let most = Number.POSITIVE_INFINITY;

	async function upload(entries: readonly DecisionLogEntry[], signal: AbortSignal): Promise<number> {
		const part = entries.length > most ? entries.slice(0, most) : entries;
		const body = await compress(`[${part.map(({ json }) => json).join(",")}]`);
		const status = await post(body, signal);
		if (status >= 200 && status < 300) return part.length;
		if (status === 413 && part.length > 1) {
			most = Math.ceil(part.length / 2);
			return upload(entries, signal);
		}
		const isRefused = status === 400 || status === 413 || status === 422;
		throw new ResumeGuardError(
			isRefused ? "log_refused" : "log_unavailable",
			`the decision log's service answered ${status}`,
		);
	}

	async function post(body: Buffer, signal: AbortSignal): Promise<number> {
		const headers = {
			"content-type": "application/json",
			"content-encoding": "gzip",
			"content-length": body.byteLength,
			...(authorization !== undefined && { authorization: await authorization() }),
		};
		signal.throwIfAborted();
		return new Promise((resolve, reject) => {
			const { ca } = options;
			const request = url.protocol === "https:" ? requestHttps : requestHttp;
			const posting = request(
				url,
				{ method: "POST", headers, signal, ...(ca !== undefined && { ca: Buffer.from(ca) }) },
				(response) => {
					// What it says beside its status is of no use, and of any length.
					response.destroy();
					resolve(response.statusCode ?? 0);
				},
			);
			posting.on("socket", (socket) => socket.unref());
			posting.on("error", reject);
			posting.end(body);
		});
	}

	return {
		name: "http",
		batchBytes,
		delay: delay * 1000,
		async write(entries, given) {
			const controller = new AbortController();
			const { signal } = controller;
			const abort = () => controller.abort();
			const timer = setTimeout(abort, timeout * 1000).unref();
			given.addEventListener("abort", abort, { once: true });
			const aborted = new Promise<never>((_, reject) => {
				signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
			});
			try {
				// The callback may hang, too.
				return await Promise.race([upload(entries, signal), aborted]);
			} catch (cause) {
				if (cause instanceof ResumeGuardError) throw cause;
				throw new ResumeGuardError(
					"log_unavailable",
					`the decision log's service cannot be reached (${reasonOf(cause, signal)})`,
				);
			} finally {
				clearTimeout(timer);
				given.removeEventListener("abort", abort);
			}
		},
	};
}

function urlOf({ url, partition }: HttpSinkOptions): URL {
	if (!URL.canParse(String(url))) throw new TypeError("httpSink: `url` must be a URL");
	const service = new URL(url);
	const { protocol, hostname, username, password, search, hash } = service;
	const isSafe = protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
	if (!isSafe) throw new TypeError("httpSink: `url` must be https, or http on loopback");
	if (username || password || search || hash) {
		throw new TypeError("httpSink: `url` must be without credentials, query and fragment");
	}
	if (partition !== undefined && (typeof partition !== "string" || /^\.{0,2}$/.test(partition))) {
		throw new TypeError("httpSink: `partition` must be a segment of a path");
	}
	const segments = ["logs", ...(partition === undefined ? [] : [encodeURIComponent(partition)])];
	service.pathname = `${service.pathname.replace(/\/$/, "")}/${segments.join("/")}`;
	return service;
}

function isLoopback(hostname: string): boolean {
	return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname);
}

// Neither its message nor itself: that of the callback may quote the token.
function reasonOf(cause: unknown, signal: AbortSignal): string {
	if (signal.aborted) return "timed out";
	const { code } = (cause ?? {}) as { code?: unknown };
	return typeof code === "string" && /^[A-Z_]+$/.test(code) ? code : "unknown";
}
