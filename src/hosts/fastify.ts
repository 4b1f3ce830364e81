import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import fp from "fastify-plugin";
import type { Claims } from "../claims.ts";
import type { ResumeGuard } from "../guard.ts";
import type { Incoming } from "../resume/ground.ts";
import type { SessionMatch } from "../sessions/store.ts";
import type { Answer, WholeAnswer } from "../wire/answer.ts";
import { querySessionId, sessionId } from "../wire/headers.ts";
import { rootMetadataPath } from "../wire/metadata.ts";
import { isMcpMethod, methodAnswer } from "../wire/origin.ts";
import { errorAnswer } from "../wire/refusal.ts";
import { whyNoJson } from "./body.ts";
import { createEndpoint, type EndpointOptions, type GuardedRequest, type Passed } from "./endpoint.ts";
import { logTo } from "./log.ts";
import { messageExtra } from "./message-extra.ts";
import { assertFastifyOptions } from "./options.ts";
import { authInfoOf, authorizationOf, certificateOf, headersOf } from "./request.ts";
import { postResponseOf, writeAnswer } from "./response.ts";
import { type AuthInfo, type NodeTransport, runPost } from "./sdk.ts";

export interface ResumeGuardFastifyOptions extends EndpointOptions {
	/** The path of the MCP endpoint. Default: `/mcp`. */
	readonly path?: string;
	/** Serves HTTP+SSE (MCP 2024-11-05), too; needs `connect`. Default: not. */
	readonly sse?: {
		/** Default: `/sse`. */
		readonly path?: string;
		/** Where clients post. Default: `/messages`. */
		readonly messages?: string;
	};
}

/** What an instance with the guard has under `app.resumeGuard`. */
export interface FastifyResumeGuard {
	readonly guard: ResumeGuard;
	/** Ends the sessions whose bindings match, as at logout or revocation; resolves with how many. */
	endSessions(match: SessionMatch): Promise<number>;
}

declare module "fastify" {
	interface FastifyRequest {
		/** Set on POST requests to the MCP endpoint that the guard lets through. */
		mcp: GuardedRequest<NodeTransport> | undefined;
	}
	interface FastifyInstance {
		resumeGuard: FastifyResumeGuard;
	}
}

/**
 * Guards the MCP endpoint of a Fastify host. It verifies tokens, decides every POST, GET and DELETE, answers them, refuses
 * what is refused, and serves the protected-resource metadata. Without `connect` the host registers the POST route and
 * hands `request.mcp` to a transport of the MCP SDK.
 *
 * @throws {TypeError} for wrong options
 * @throws {ResumeGuardError} `data_invalid`, `policy_invalid`, `file_unreadable`
 */
export const resumeGuard = fp(
	async (app: FastifyInstance, options: ResumeGuardFastifyOptions) => {
		assertFastifyOptions(options);
		const { path = "/mcp", sse } = options;
		const { path: ssePath = "/sse", messages: messagesPath = "/messages" } = sse ?? {};
		const url = app.prefix + path;
		const messagesUrl = app.prefix + messagesPath;
		const guarded = new Set(sse === undefined ? [url] : [url, app.prefix + ssePath, messagesUrl]);
		const endpoint = await createEndpoint<NodeTransport>(options, logTo(app.log));
		const authenticatedAs = new WeakMap<FastifyRequest, { claims: Claims; auth: AuthInfo }>();
		const streams = new Set<ServerResponse>();
		const incomingOf = (request: FastifyRequest): Incoming => {
			const headers = headersOf(request.headers);
			const method = request.method as Incoming["method"];
			return {
				method,
				transport: "streamable-http",
				headers,
				sessionId: sessionId(headers),
				presented: authenticatedAs.get(request)?.claims,
			};
		};

		const extraOf = (request: FastifyRequest) =>
			messageExtra(authenticatedAs.get(request)?.auth, request.method, urlOf(request), request.headers);

		app.decorateRequest("mcp", undefined);
		app.decorate("resumeGuard", { guard: endpoint.guard, endSessions: endpoint.endSessions });
		// Streams stay open for as long as the client likes; the server could not close.
		let isClosing = false;
		app.addHook("preClose", async () => {
			isClosing = true;
			for (const response of streams) response.destroy();
			await endpoint.close();
		});

		// Where it is depends on the policy data, which may change.
		if (options.watch === true || endpoint.metadataAt(rootMetadataPath) !== undefined) {
			for (const wellKnown of [rootMetadataPath, `${rootMetadataPath}/*`]) {
				app.get(wellKnown, (request, reply) => {
					const metadata = endpoint.metadataAt(request.url.slice(app.prefix.length).replace(/\?.*/s, ""));
					return metadata === undefined ? reply.callNotFound() : send(reply, metadata);
				});
			}
		}

		const below = `${messagesUrl}/*`;
		app.addHook("onRoute", (route) => {
			if (guarded.has(route.url) || route.url === below)
				route.logSerializers = { ...route.logSerializers, req: withoutQuery };
		});

		app.addHook("onReady", async () => {
			if (options.connect === undefined && !app.hasRoute({ method: "POST", url })) {
				app.log.warn(`mcp-resume-guard: there is no route for POST ${url}, and no \`connect\``);
			}
		});

		app.addHook("onRequest", async (request, reply) => {
			if (!guarded.has(request.routeOptions.url ?? "")) return;
			const { refused, headers } = endpoint.checkOrigin(headersOf(request.headers));
			if (refused !== undefined) return send(reply, refused);
			// On the raw response: the MCP server writes to that.
			for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
			// Where there is no body, none is parsed, whatever its type is said to be.
			if (request.method !== "POST") request.headers = { "content-type": undefined };
			if (!isMcpMethod(request.method)) return;
			const certificate = certificateOf(request.raw);
			const authenticated = await endpoint.authenticate(authorizationOf(request.raw), {
				method: request.method,
				url: urlOf(request),
				headers: request.headers,
				...(certificate !== undefined && { certificate }),
			});
			if ("refused" in authenticated) return send(reply, authenticated.refused);
			const { token, claims } = authenticated;
			if (token !== undefined && claims !== undefined) {
				const auth = authInfoOf(token, claims);
				authenticatedAs.set(request, { claims, auth });
				Object.assign(request.raw, { auth });
			}
			// Fastify parses text, too.
			const unreadable = request.method === "POST" ? whyNoJson(request.headers["content-type"]) : undefined;
			if (unreadable !== undefined) {
				const { status, message } = unreadable;
				return send(reply, errorAnswer(status, { code: -32700, message }));
			}
		});

		app.addHook("preHandler", (request, reply, done) => {
			if (request.routeOptions.url !== url || request.method !== "POST") return done();
			admit(request, reply).then(
				(passed) => passed && runPost(passed.admitted.post, done),
				(error) => done(error),
			);
		});

		async function admit(
			request: FastifyRequest,
			reply: FastifyReply,
		): Promise<Passed<NodeTransport> | undefined> {
			const { raw } = reply;
			const incoming = incomingOf(request);
			const passed = await endpoint.post(incoming, request.body, postResponseOf(raw), extraOf(request));
			if ("answer" in passed) {
				await respond(request, reply, passed.answer);
				return undefined;
			}
			raw.once("close", () => {
				void endpoint.settle(passed, { status: raw.statusCode, complete: raw.writableFinished });
			});
			request.mcp = passed.request;
			return passed;
		}

		async function respond(request: FastifyRequest, reply: FastifyReply, answer: Answer): Promise<void> {
			reply.hijack();
			if (isClosing) return void reply.raw.destroy();
			streams.add(reply.raw);
			reply.raw.once("close", () => streams.delete(reply.raw));
			await writeAnswer(reply.raw, answer).catch((error) => request.log.error(error, "mcp stream cut"));
		}

		app.get(path, { exposeHeadRoute: false }, async (request, reply) =>
			respond(request, reply, await endpoint.get(incomingOf(request))),
		);

		if (options.connect !== undefined) {
			app.post(path, async () => {
				throw new Error("a POST passes, and there is no route for it");
			});
		}
		app.delete(path, async (request, reply) => send(reply, await endpoint.delete(incomingOf(request))));

		if (sse !== undefined) {
			app.get(ssePath, { exposeHeadRoute: false }, async (request, reply) => {
				const incoming = { ...incomingOf(request), transport: "sse" } as const;
				await respond(request, reply, await endpoint.openSse(incoming, messagesUrl));
			});
			app.post(messagesPath, async (request, reply) => {
				const incoming = incomingOf(request);
				const named = querySessionId(incoming.headers, new URL(request.url, "http://host"));
				const answer =
					named === "conflict"
						? errorAnswer(400, { code: -32000, message: "Bad Request: two session ids" })
						: await endpoint.postSse(
								{ ...incoming, transport: "sse", sessionId: named.id },
								request.body,
								extraOf(request),
							);
				return send(reply, answer);
			});
			answerOthers(ssePath, ["GET"]);
			answerOthers(messagesPath, ["POST"]);
			// Its query has a session id in it all the same, and the host would log it.
			app.all(`${messagesPath}/*`, (_, reply) =>
				send(reply, errorAnswer(404, { code: -32000, message: "Not Found" })),
			);
		}

		answerOthers(path, ["GET", "POST", "DELETE"]);

		/** Answers the methods that the endpoint does not have. */
		function answerOthers(at: string, methods: HTTPMethods[]): void {
			const others = METHODS.filter((method) => !methods.includes(method));
			app.route({
				url: at,
				method: others,
				handler: (request, reply) =>
					send(reply, methodAnswer(request.method, headersOf(request.headers), methods)),
			});
		}
	},
	{ fastify: "5.x", name: "mcp-resume-guard" },
);

export default resumeGuard;

const METHODS: readonly HTTPMethods[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

// A query of these paths has a session id in it, or by a client's mistake a token.
function withoutQuery({ method, url, host, ip }: FastifyRequest): object {
	return { method, url: url.replace(/\?.*/, "?…"), host, remoteAddress: ip };
}

function urlOf({ protocol, host, originalUrl }: FastifyRequest): string {
	return `${protocol}://${host}${originalUrl}`;
}

function send(reply: FastifyReply, { status, headers, body }: WholeAnswer): FastifyReply {
	return reply.code(status).headers(headers).send(body);
}
