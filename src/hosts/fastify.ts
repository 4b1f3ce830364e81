import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import type { Claims } from "../claims.ts";
import type { ResumeGuard } from "../guard.ts";
import type { Incoming } from "../resume/ground.ts";
import type { SessionMatch } from "../sessions/store.ts";
import type { WholeAnswer } from "../wire/answer.ts";
import { sessionId } from "../wire/headers.ts";
import { rootMetadataPath } from "../wire/metadata.ts";
import { isMcpMethod, methodAnswer } from "../wire/origin.ts";
import { createEndpoint, type EndpointOptions, type GuardedRequest, type Passed } from "./endpoint.ts";
import { logTo } from "./log.ts";
import { authInfoOf, authorizationOf, certificateOf, headersOf } from "./request.ts";
import { postResponseOf, writeAnswer } from "./response.ts";
import { type NodeTransport, runPost } from "./sdk.ts";

export interface ResumeGuardFastifyOptions extends EndpointOptions {
	/** The path of the MCP endpoint. Default: `/mcp`. */
	readonly path?: string;
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
 * Guards the MCP endpoint of a Fastify host. It verifies tokens, decides every POST, GET and DELETE, answers GET and
 * DELETE itself, refuses what is refused, and serves the protected-resource metadata. The host registers the POST
 * route and hands `request.mcp` to the MCP server.
 *
 * @throws {TypeError} for wrong options
 * @throws {ResumeGuardError} `data_invalid`, `policy_invalid`, `file_unreadable`
 */
export const resumeGuard = fp(
	async (app: FastifyInstance, options: ResumeGuardFastifyOptions) => {
		const { path = "/mcp" } = options;
		const url = app.prefix + path;
		const endpoint = await createEndpoint<NodeTransport>(options, logTo(app.log));
		const presented = new WeakMap<FastifyRequest, Claims>();
		const streams = new Set<ServerResponse>();
		const incomingOf = (request: FastifyRequest): Incoming => {
			const headers = headersOf(request.headers);
			const method = request.method as Incoming["method"];
			return { method, headers, sessionId: sessionId(headers), presented: presented.get(request) };
		};

		app.decorateRequest("mcp", undefined);
		app.decorate("resumeGuard", { guard: endpoint.guard, endSessions: endpoint.endSessions });
		// Streams stay open for as long as the client likes; the server could not close.
		app.addHook("preClose", async () => {
			for (const response of streams) response.destroy();
			await endpoint.close();
		});

		if (endpoint.metadata !== undefined) {
			const { path: ownPath, document } = endpoint.metadata;
			for (const wellKnown of new Set([ownPath, rootMetadataPath])) {
				app.get(wellKnown, (_request, reply) =>
					reply.header("access-control-allow-origin", "*").send(document),
				);
			}
		}

		app.addHook("onRequest", async (request, reply) => {
			if (request.routeOptions.url !== url) return;
			const { refused, headers } = endpoint.checkOrigin(headersOf(request.headers));
			if (refused !== undefined) return send(reply, refused);
			// On the raw response: the MCP server writes to that.
			for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
			if (!isMcpMethod(request.method)) return;
			const certificate = certificateOf(request.raw);
			const authenticated = await endpoint.authenticate(authorizationOf(request.raw), {
				method: request.method,
				url: `${request.protocol}://${request.host}${request.originalUrl}`,
				headers: request.headers,
				...(certificate !== undefined && { certificate }),
			});
			if ("refused" in authenticated) return send(reply, authenticated.refused);
			const { token, claims } = authenticated;
			if (token === undefined || claims === undefined) return;
			presented.set(request, claims);
			Object.assign(request.raw, { auth: authInfoOf(token, claims) });
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
			const passed = await endpoint.post(incomingOf(request), request.body, postResponseOf(raw));
			if ("refused" in passed) {
				send(reply, passed.refused);
				return undefined;
			}
			raw.once("close", () => {
				void endpoint.settle(passed, { status: raw.statusCode, complete: raw.writableFinished });
			});
			request.mcp = passed.request;
			return passed;
		}

		app.get(path, { exposeHeadRoute: false }, async (request, reply) => {
			const answer = await endpoint.get(incomingOf(request));
			reply.hijack();
			streams.add(reply.raw);
			reply.raw.once("close", () => streams.delete(reply.raw));
			await writeAnswer(reply.raw, answer).catch((error) => request.log.error(error, "mcp stream cut"));
		});

		app.delete(path, async (request, reply) => send(reply, await endpoint.delete(incomingOf(request))));

		app.route({
			url: path,
			method: ["HEAD", "PUT", "PATCH", "OPTIONS"],
			handler: (request, reply) => send(reply, methodAnswer(request.method, headersOf(request.headers))),
		});
	},
	{ fastify: "5.x", name: "mcp-resume-guard" },
);

export default resumeGuard;

function send(reply: FastifyReply, { status, headers, body }: WholeAnswer): FastifyReply {
	return reply.code(status).headers(headers).send(body);
}
