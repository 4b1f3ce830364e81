import type { ResumeGuard } from "../guard.ts";
import type { Incoming } from "../resume/ground.ts";
import type { SessionMatch } from "../sessions/store.ts";
import type { Answer } from "../wire/answer.ts";
import { type RequestHeaders, sessionId } from "../wire/headers.ts";
import { isMcpMethod, methodAnswer } from "../wire/origin.ts";
import { errorAnswer } from "../wire/refusal.ts";
import { readJson } from "./body.ts";
import { createEndpoint, type EndpointOptions, type GuardedRequest } from "./endpoint.ts";
import { consoleLogger, type Logger, logTo } from "./log.ts";
import { assertHandler, assertHostOptions } from "./options.ts";
import { authInfoOf } from "./request.ts";
import { type AuthInfo, runPost, type WebTransport } from "./sdk.ts";
import { createBody, guardedBody } from "./web-body.ts";

export interface FetchGuardOptions extends EndpointOptions {
	/** The path of the MCP endpoint. Default: `/mcp`. */
	readonly path?: string;
	/** Default: refusals and faults to the console. */
	readonly logger?: Logger;
}

/** What a handler is given: pass `body` and `authInfo` on to the transport's `handleRequest`. */
export interface FetchRequest extends GuardedRequest<WebTransport> {
	/** The SDK's `AuthInfo`; `undefined`: an anonymous session. */
	readonly authInfo: AuthInfo | undefined;
}

/** Handles a POST that the guard lets through: hands it to the MCP server. */
export type FetchHandler = (request: Request, mcp: FetchRequest) => Promise<Response> | Response;

export interface FetchGuard {
	readonly guard: ResumeGuard;
	/**
	 * Guards the MCP endpoint, and serves the protected-resource metadata; `undefined`: another path.
	 *
	 * @param handler not with the option `connect`: then the guard answers POSTs itself
	 * @throws {TypeError} without one of the two, or with both
	 */
	handle(request: Request, handler?: FetchHandler): Promise<Response | undefined>;
	/** Ends the sessions whose bindings match, as at logout or revocation; resolves with how many. */
	endSessions(match: SessionMatch): Promise<number>;
	/** Closes streams and transports. */
	close(): Promise<void>;
}

/**
 * Guards the MCP endpoint of a host that makes a Response of a Request: Hono, and others.
 *
 * @throws {TypeError} for wrong options
 * @throws {ResumeGuardError} `data_invalid`, `policy_invalid`, `file_unreadable`
 */
export async function createFetchGuard(options: FetchGuardOptions): Promise<FetchGuard> {
	assertHostOptions(options);
	const { path = "/mcp", logger = consoleLogger } = options;
	const log = logTo(logger);
	const endpoint = await createEndpoint<WebTransport>(options, log);
	const open = new Set<() => void>();

	function respond(answer: Answer, further: Readonly<Record<string, string>> = {}): Response {
		const headers = { ...further, ...answer.headers };
		if (!("stream" in answer)) {
			const { status, body } = answer;
			return new Response(body === "" ? null : body, { status, headers });
		}
		const { readable, sink } = createBody();
		open.add(sink.cut);
		answer
			.stream(sink)
			.catch((error) => {
				sink.cut();
				log.error(error, "stream cut");
			})
			.finally(() => open.delete(sink.cut));
		return new Response(readable, { status: answer.status, headers });
	}

	async function handleMcp(request: Request, handler: FetchHandler | undefined): Promise<Response> {
		const { method } = request;
		const headers: RequestHeaders = Object.fromEntries(request.headers);
		const origin = endpoint.checkOrigin(headers);
		if (origin.refused !== undefined) return respond(origin.refused);
		if (!isMcpMethod(method)) return respond(methodAnswer(method, headers), origin.headers);

		const { authorization } = headers;
		const authenticated = await endpoint.authenticate(authorization === undefined ? [] : [authorization], {
			method,
			url: request.url,
			headers,
		});
		if ("refused" in authenticated) return respond(authenticated.refused, origin.headers);
		const { token, claims } = authenticated;
		const incoming: Incoming = {
			method,
			transport: "streamable-http",
			headers,
			sessionId: sessionId(headers),
			presented: claims,
		};

		if (method === "GET") return respond(await endpoint.get(incoming), origin.headers);
		if (method === "DELETE") return respond(await endpoint.delete(incoming), origin.headers);

		const read = await readJson(headers["content-type"], request.body ?? new Blob().stream());
		if ("unreadable" in read) {
			const { status, message } = read.unreadable;
			return respond(errorAnswer(status, { code: -32700, message }), origin.headers);
		}
		const authInfo = token === undefined || claims === undefined ? undefined : authInfoOf(token, claims);
		const { readable, response: post, pipe } = guardedBody();
		const requestInfo = { headers, url: new URL(request.url) };
		const passed = await endpoint.post(incoming, read.body, post, { authInfo, requestInfo, request });
		if ("answer" in passed) return respond(passed.answer, origin.headers);
		if (handler === undefined) throw new Error("a POST passes, and there is no handler");
		const mcp: FetchRequest = { ...passed.request, authInfo };
		const response = await runPost(passed.admitted.post, async () => handler(request, mcp)).catch(
			async (error) => {
				post.cut();
				await endpoint.settle(passed, { status: 500, complete: true });
				throw error;
			},
		);
		const settle = (complete: boolean) => void endpoint.settle(passed, { status: response.status, complete });
		const { status, statusText } = response;
		const all = new Headers(response.headers);
		for (const [name, value] of Object.entries(origin.headers)) all.set(name, value);
		void pipe(response.body).then(settle);
		return new Response(response.body === null ? null : readable, { status, statusText, headers: all });
	}

	return {
		guard: endpoint.guard,
		endSessions: endpoint.endSessions,
		async handle(request, handler) {
			assertHandler(handler, options.connect);
			const { pathname } = new URL(request.url);
			const metadata = request.method === "GET" ? endpoint.metadataAt(pathname) : undefined;
			if (metadata !== undefined) return respond(metadata);
			return pathname === path ? handleMcp(request, handler) : undefined;
		},
		async close() {
			for (const cut of open) cut();
			await endpoint.close();
		},
	};
}
