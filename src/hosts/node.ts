import type { IncomingMessage, ServerResponse } from "node:http";
import type { ResumeGuard } from "../guard.ts";
import type { Incoming } from "../resume/ground.ts";
import type { SessionMatch } from "../sessions/store.ts";
import type { Answer } from "../wire/answer.ts";
import { sessionId } from "../wire/headers.ts";
import { isMcpMethod, methodAnswer } from "../wire/origin.ts";
import { errorAnswer } from "../wire/refusal.ts";
import { readJson } from "./body.ts";
import { createEndpoint, type EndpointOptions, type GuardedRequest } from "./endpoint.ts";
import { consoleLogger, type Logger, logTo } from "./log.ts";
import { messageExtra } from "./message-extra.ts";
import { assertHandler, assertHostOptions } from "./options.ts";
import { authInfoOf, authorizationOf, headersOf, tokenRequestOf } from "./request.ts";
import { postResponseOf, writeAnswer } from "./response.ts";
import { type NodeTransport, runPost } from "./sdk.ts";

export interface NodeGuardOptions extends EndpointOptions {
	/** The path of the MCP endpoint. Default: `/mcp`. */
	readonly path?: string;
	/** Default: refusals and faults to the console. */
	readonly logger?: Logger;
}

/** Handles a POST that the guard lets through: hands it to the MCP server. */
export type NodeHandler = (
	request: IncomingMessage,
	response: ServerResponse,
	mcp: GuardedRequest<NodeTransport>,
) => Promise<void> | void;

/** For `http.createServer`, and as middleware of Express and the like: what is not the guard's goes to `next`, or is 404. */
export type NodeListener = (
	request: IncomingMessage & { body?: unknown; originalUrl?: string },
	response: ServerResponse,
	next?: (error?: unknown) => void,
) => Promise<void>;

export interface NodeGuard {
	readonly guard: ResumeGuard;
	/**
	 * Guards the MCP endpoint, and serves the protected-resource metadata.
	 *
	 * @param handler not with the option `connect`: then the guard answers POSTs itself
	 * @throws {TypeError} without one of the two, or with both
	 */
	listener(handler?: NodeHandler): NodeListener;
	/** Ends the sessions whose bindings match, as at logout or revocation; resolves with how many. */
	endSessions(match: SessionMatch): Promise<number>;
	/** Closes streams and transports, so that the server can close. */
	close(): Promise<void>;
}

/**
 * Guards the MCP endpoint of a host on node:http, Express or Connect.
 *
 * @throws {TypeError} for wrong options
 * @throws {ResumeGuardError} `data_invalid`, `policy_invalid`, `file_unreadable`
 */
export async function createNodeGuard(options: NodeGuardOptions): Promise<NodeGuard> {
	assertHostOptions(options);
	const { path = "/mcp", logger = consoleLogger } = options;
	const log = logTo(logger);
	const endpoint = await createEndpoint<NodeTransport>(options, log);
	const open = new Set<ServerResponse>();

	let isClosing = false;

	async function answer(response: ServerResponse, what: Answer): Promise<void> {
		if (isClosing) return void response.destroy();
		open.add(response);
		response.once("close", () => open.delete(response));
		await writeAnswer(response, what).catch((error) => log.error(error, "stream cut"));
	}

	async function handle(
		request: Parameters<NodeListener>[0],
		response: ServerResponse,
		handler: NodeHandler | undefined,
	): Promise<void> {
		const { method = "" } = request;
		const headers = headersOf(request.headers);
		const origin = endpoint.checkOrigin(headers);
		if (origin.refused !== undefined) return answer(response, origin.refused);
		for (const [name, value] of Object.entries(origin.headers)) response.setHeader(name, value);
		if (!isMcpMethod(method)) return answer(response, methodAnswer(method, headers));

		const asked = tokenRequestOf(request);
		const authenticated = await endpoint.authenticate(authorizationOf(request), asked);
		if ("refused" in authenticated) return answer(response, authenticated.refused);
		const { token, claims } = authenticated;
		const auth = token === undefined || claims === undefined ? undefined : authInfoOf(token, claims);
		if (auth !== undefined) Object.assign(request, { auth });
		const incoming: Incoming = {
			method,
			transport: "streamable-http",
			headers,
			sessionId: sessionId(headers),
			presented: claims,
		};

		if (method === "GET") return answer(response, await endpoint.get(incoming));
		if (method === "DELETE") return answer(response, await endpoint.delete(incoming));

		// Express and others may have parsed it.
		const read =
			request.body === undefined ? await readJson(headers["content-type"], request) : { body: request.body };
		if ("unreadable" in read) {
			const { status, message } = read.unreadable;
			return answer(response, errorAnswer(status, { code: -32700, message }));
		}
		const extra = messageExtra(auth, method, asked.url, request.headers);
		const passed = await endpoint.post(incoming, read.body, postResponseOf(response), extra);
		if ("answer" in passed) return answer(response, passed.answer);
		if (handler === undefined) throw new Error("a POST passes, and there is no handler");
		response.once("close", () => {
			void endpoint.settle(passed, { status: response.statusCode, complete: response.writableFinished });
		});
		await runPost(passed.admitted.post, () => handler(request, response, passed.request));
	}

	return {
		guard: endpoint.guard,
		endSessions: endpoint.endSessions,
		listener(handler) {
			assertHandler(handler, options.connect);
			return async (request, response, next) => {
				const { pathname } = new URL(request.originalUrl ?? request.url ?? "/", "http://host");
				try {
					const metadata = request.method === "GET" ? endpoint.metadataAt(pathname) : undefined;
					if (metadata !== undefined) return await answer(response, metadata);
					if (pathname === path) return await handle(request, response, handler);
				} catch (error) {
					if (next !== undefined) return next(error);
					log.error(error, "request failed");
					if (response.headersSent) response.destroy();
					else await answer(response, errorAnswer(500, { code: -32603, message: "Internal server error" }));
					return;
				}
				if (next !== undefined) next();
				else await answer(response, { status: 404, headers: {}, body: "" });
			};
		},
		async close() {
			isClosing = true;
			for (const response of open) response.destroy();
			await endpoint.close();
		},
	};
}
