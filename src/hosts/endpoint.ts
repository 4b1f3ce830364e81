import type { Claims } from "../claims.ts";
import { ResumeGuardError } from "../errors.ts";
import type { EventLog } from "../events/log.ts";
import { createMemoryEventLog } from "../events/memory.ts";
import { createResumeGuard, type PolicyFault, type ResumeGuard, type ResumeGuardOptions } from "../guard.ts";
import { closeCalls } from "../resume/calls.ts";
import { answerDelete } from "../resume/delete.ts";
import { answerGet } from "../resume/get.ts";
import { type DecisionRecord, endSession, type Ground, type Incoming } from "../resume/ground.ts";
import {
	createLiveSessions,
	type LiveSession,
	type MessageExtra,
	type ServerResponse,
	serve,
} from "../resume/live.ts";
import { answerPost, whyNoStream } from "../resume/own.ts";
import { type Admitted, admitPost } from "../resume/post.ts";
import { openSse, postSse } from "../resume/sse.ts";
import { createMemorySessionStore } from "../sessions/memory.ts";
import type { SessionMatch, SessionStore } from "../sessions/store.ts";
import {
	createTokenVerifier,
	proofAlgorithms,
	type TokenRequest,
	type TokenScheme,
	type TokenVerifier,
	type TokenVerifierOptions,
	tokenCredentials,
} from "../tokens/index.ts";
import type { Answer, WholeAnswer } from "../wire/answer.ts";
import { type ResourceMetadata, resourceMetadata, rootMetadataPath } from "../wire/metadata.ts";
import { checkOrigin, type OriginOptions } from "../wire/origin.ts";
import { errorAnswer, tokenAnswer } from "../wire/refusal.ts";
import { type Connect, connectOwn } from "./own-transport.ts";
import { attributeSends, createEventStore, type SdkEventStore, type SdkTransport } from "./sdk.ts";

/** What every host's guard takes. */
export interface EndpointOptions
	extends Pick<ResumeGuardOptions, "data" | "policy" | "bundle" | "watch" | "onDecision">,
		OriginOptions {
	/** How access tokens are verified: options of the built-in verifier, or a verifier of your own. */
	readonly tokens: TokenVerifierOptions | TokenVerifier;
	/**
	 * Connects an MCP server to the transport of a new session: `(transport) => createServer().connect(transport)`. With it
	 * the guard answers POSTs itself. Without it the host hands those that are let through to a transport of the MCP SDK.
	 */
	readonly connect?: Connect;
	/** Issuers for the protected-resource metadata (RFC 9728). Default: the issuer of `tokens`. */
	readonly authorizationServers?: readonly string[];
	/** The session table. Default: in memory, with its default limits. */
	readonly sessions?: SessionStore;
	/** The event log. Default: in memory, with its default limits. */
	readonly events?: EventLog;
	/** tools/list leaves out the tools that the token does not cover. Default: false. */
	readonly listCoveredTools?: boolean;
	/** The host has no sessions, so there is nothing to resume: every POST is decided by itself. Default: false. */
	readonly stateless?: boolean;
}

/** What a host does with what it is told. */
export interface EndpointLog {
	decision(record: DecisionRecord): void;
	fault(fault: PolicyFault): void;
	/** A request came with a token, or a proof, that is no good: nothing was decided. */
	token(refused: { code: string; reason: string }): void;
	/** Another policy, or other data, is in force. */
	revision(revision: string): void;
	/** Tokens cannot be verified, or a stream broke. */
	error(error: unknown, what: string): void;
}

/** The session of a POST, for the route that hands it to the MCP server. */
export interface GuardedSession<T extends SdkTransport = SdkTransport> {
	/** What `Mcp-Session-Id` is; as good as a token. */
	readonly id: string;
	/**
	 * For the constructor of the MCP SDK's transport: the session's id, and an event store. What it stores is labelled,
	 * logged and decided about.
	 */
	readonly transportOptions: {
		readonly sessionIdGenerator: () => string;
		readonly eventStore: SdkEventStore;
	};
	/** The transport that has been attached; `undefined` at the `initialize` that opens the session. */
	readonly transport: T | undefined;
	/** Ties a transport to the session: its messages are attributed to calls, and it is closed when the session ends. */
	attach<A extends T>(transport: A): A;
}

/** What the guard knows of a POST that it lets through. */
export interface GuardedRequest<T extends SdkTransport = SdkTransport> {
	/** Verified claims; `undefined`: an anonymous session. */
	readonly claims: Claims | undefined;
	/** `undefined` only if the host is `stateless`. */
	readonly session: GuardedSession<T> | undefined;
	/** The body that was decided about: pass on this one. */
	readonly body: unknown;
}

/** A POST that was let through: what the route sees, and what runs it. */
export interface Passed<T extends SdkTransport> {
	readonly request: GuardedRequest<T>;
	readonly admitted: Admitted;
}

/** An MCP endpoint under guard, for any host: requests in, answers out. */
export interface Endpoint<T extends SdkTransport> {
	readonly guard: ResumeGuard;
	/** The protected-resource metadata of the data in force, if this path is one where it is. */
	metadataAt(path: string): WholeAnswer | undefined;
	/** Host and Origin; the headers are for every answer to this request. */
	checkOrigin(headers: Incoming["headers"]): {
		refused?: WholeAnswer;
		headers: Readonly<Record<string, string>>;
	};
	/** The verified claims of the request's token, if it has one, or the refusal. */
	authenticate(
		authorization: readonly string[],
		request: Omit<TokenRequest, "scheme">,
	): Promise<{ token?: string; claims?: Claims } | { refused: WholeAnswer }>;
	get(incoming: Incoming): Promise<Answer>;
	delete(incoming: Incoming): Promise<WholeAnswer>;
	/**
	 * Decides a POST, and answers it or lets it pass. `response` is what the MCP server will write to if it passes, `extra`
	 * what it is told if it is connected.
	 */
	post(
		incoming: Incoming,
		body: unknown,
		response: ServerResponse,
		extra: MessageExtra,
	): Promise<{ answer: Answer } | Passed<T>>;
	/** Answers a GET of the SSE endpoint (MCP 2024-11-05); `messages` is the path of the message endpoint. */
	openSse(incoming: Incoming, messages: string): Promise<Answer>;
	/** Answers a POST of the message endpoint. */
	postSse(incoming: Incoming, body: unknown, extra: MessageExtra): Promise<WholeAnswer>;
	/** To be called when the response to a POST is complete or broken off; never rejects. */
	settle(passed: Passed<T>, response: { status: number; complete: boolean }): Promise<void>;
	/** Ends the sessions whose bindings match, as at logout or revocation; resolves with how many. */
	endSessions(match: SessionMatch): Promise<number>;
	/** Closes what runs here; the sessions stay. */
	close(): Promise<void>;
}

/**
 * @throws {TypeError} for wrong options
 * @throws {ResumeGuardError} `data_invalid`, `policy_invalid`, `file_unreadable`
 */
export async function createEndpoint<T extends SdkTransport>(
	options: EndpointOptions,
	log: EndpointLog,
): Promise<Endpoint<T>> {
	const { data, policy, bundle, watch, onDecision, connect, stateless = false } = options;
	if (connect !== undefined && stateless) {
		throw new TypeError("`connect` is for sessions, which a `stateless` host does not have");
	}
	const guard = await createResumeGuard({
		...(data !== undefined && { data }),
		...(policy !== undefined && { policy }),
		...(bundle !== undefined && { bundle }),
		...(watch !== undefined && { watch }),
		...(onDecision !== undefined && { onDecision }),
		onFault: log.fault,
		onReloadError: (error) => log.error(error, "policy not reloaded: the last good one stays"),
	});
	guard.onRevision(() => log.revision(guard.revision));
	const verify = verifierOf(options.tokens, guard);
	const metadata = metadataOf(guard, issuersOf(options));
	const ground: Ground = {
		guard,
		sessions: options.sessions ?? createMemorySessionStore(),
		events: options.events ?? createMemoryEventLog(),
		get resourceMetadata() {
			return metadata()?.url;
		},
		stateless,
		listCoveredTools: options.listCoveredTools ?? false,
		observe: log.decision,
		report: log.error,
	};
	const lives = createLiveSessions(ground);
	const sessions = new WeakMap<LiveSession, GuardedSession<T>>();

	function sessionOf(live: LiveSession): GuardedSession<T> {
		const known = sessions.get(live);
		if (known !== undefined) return known;
		let attached: T | undefined;
		const session: GuardedSession<T> = {
			id: live.id,
			transportOptions: { sessionIdGenerator: () => live.id, eventStore: createEventStore(ground, live) },
			get transport() {
				return attached;
			},
			attach(transport) {
				attributeSends(transport, live);
				attached = transport;
				live.close = () => transport.close();
				return transport;
			},
		};
		sessions.set(live, session);
		return session;
	}

	return {
		guard,
		metadataAt(path) {
			const found = metadata();
			if (found === undefined || (path !== found.path && path !== rootMetadataPath)) return undefined;
			const headers = { "content-type": "application/json", "access-control-allow-origin": "*" };
			return { status: 200, headers, body: JSON.stringify(found.document) };
		},
		checkOrigin: (headers) => checkOrigin(headers, options),

		async authenticate(authorization, request) {
			let scheme: TokenScheme = "Bearer";
			try {
				const credentials = tokenCredentials(authorization);
				if (credentials === undefined) return {};
				const { token } = credentials;
				scheme = credentials.scheme;
				return { token, claims: await verify(token, { ...request, scheme }) };
			} catch (error) {
				return { refused: tokenRefusal(error, scheme, metadata()?.url, log) };
			}
		},

		get: (incoming) => answerGet(ground, incoming),
		delete: (incoming) => answerDelete(ground, incoming),

		async post(incoming, body, response, extra) {
			const noStream = connect && whyNoStream(incoming, body);
			if (noStream !== undefined) return { answer: noStream };
			const admitted = await admitPost(ground, lives, incoming, body);
			if ("answer" in admitted) return { answer: admitted.answer };
			const { session, post, found } = admitted;
			if (session !== undefined && connect !== undefined) {
				if (admitted.opens) await connectOwn(ground, session, "streamable-http", connect);
				return { answer: await answerPost(ground, incoming, admitted, session, session.own, extra) };
			}
			if (session !== undefined && post !== undefined) await serve(ground, found, session, post, response);
			const request = {
				claims: incoming.presented,
				session: session === undefined ? undefined : sessionOf(session),
				body: admitted.body,
			};
			return { request, admitted };
		},

		async openSse(incoming, messages) {
			const opening = await openSse(ground, lives, incoming, messages);
			if ("session" in opening && connect !== undefined)
				await connectOwn(ground, opening.session, "sse", connect);
			return opening.answer;
		},
		postSse: (incoming, body, extra) => postSse(ground, lives, incoming, body, extra),

		async settle({ admitted: { session, post, opens } }, { status, complete }) {
			if (session === undefined || post === undefined) return;
			try {
				if (opens && status >= 400) return await endSession(ground, session.key);
				// Complete without an event it was no stream: an error, or one JSON body. Its calls are answered.
				if (!complete || post.hasEmitted) return;
				await closeCalls(ground, session, post);
			} catch (error) {
				log.error(error, "a store has failed");
			}
		},

		async endSessions(match) {
			const ended = await ground.sessions.endMatching(match);
			await Promise.all(ended.map((key) => ground.events.drop(key)));
			return ended.length;
		},

		async close() {
			guard.close();
			await lives.close();
		},
	};
}

function verifierOf(tokens: TokenVerifierOptions | TokenVerifier, guard: ResumeGuard): TokenVerifier {
	if (typeof tokens === "function") return tokens;
	if (typeof tokens !== "object" || tokens === null) {
		throw new TypeError("`tokens` must be options of the token verifier, or a verifier");
	}
	return createTokenVerifier(tokens, () => guard.data);
}

/** The metadata of the data in force, made once for each. */
function metadataOf(guard: ResumeGuard, issuers: readonly string[]): () => ResourceMetadata | undefined {
	let { data } = guard;
	let made = resourceMetadata(data, issuers);
	return () => {
		if (guard.data !== data) {
			data = guard.data;
			made = resourceMetadata(data, issuers);
		}
		return made;
	};
}

function issuersOf({ authorizationServers, tokens }: EndpointOptions): readonly string[] {
	return authorizationServers ?? (typeof tokens === "function" ? [] : [tokens.issuer]);
}

function tokenRefusal(
	error: unknown,
	scheme: TokenScheme,
	resourceMetadata: string | undefined,
	log: EndpointLog,
): WholeAnswer {
	const { code, dpopNonce } = error instanceof ResumeGuardError ? error : {};
	const challenge = {
		description: error instanceof Error ? error.message : "",
		resourceMetadata,
		dpopAlgorithms: scheme === "DPoP" ? proofAlgorithms : undefined,
	};
	if (code !== undefined && code !== "token_keys_unavailable") log.token({ code, reason: reasonOf(error) });
	switch (code) {
		case "authorization_malformed":
			return tokenAnswer(400, { ...challenge, error: "invalid_request" });
		case "token_invalid":
		case "token_expired":
			return tokenAnswer(401, { ...challenge, error: "invalid_token" });
		case "dpop_proof_invalid":
			return tokenAnswer(401, { ...challenge, error: "invalid_dpop_proof" });
		case "dpop_nonce_required":
			return tokenAnswer(
				401,
				{ ...challenge, error: "use_dpop_nonce" },
				dpopNonce === undefined ? {} : { "dpop-nonce": dpopNonce },
			);
		default:
			log.error(error, "tokens cannot be verified");
			return errorAnswer(
				503,
				{ code: -32000, message: "Tokens cannot be verified now" },
				{ "retry-after": "5" },
			);
	}
}

// The cause of a refused token is in fixed words, or of jose, which does not quote it.
function reasonOf(error: unknown): string {
	const { message, cause } = error as Error;
	return cause instanceof Error && cause.constructor === Error ? cause.message : message;
}
