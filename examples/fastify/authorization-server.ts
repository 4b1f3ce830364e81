import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import type { Configuration } from "oidc-provider";
import { createMemoryAdapter } from "oidc-provider/lib/adapters/memory_adapter.js";
import { InvalidTarget } from "oidc-provider/lib/helpers/errors.js";
// Not from the package's index, which does nothing more than this but warn of Node 20.
import { Provider } from "oidc-provider/lib/provider.js";

const ALG = "ES256";
const HOUR = 3600;
const DEFAULT_USER = "alice";

export interface AuthorizationServerOptions {
	/** Default: any that is free. */
	readonly port?: number;
	/** Which resource indicators (RFC 8707) may be asked for: `true`, or with these scopes. */
	readonly resources: (indicator: string) => boolean | readonly string[];
	/** Scopes that a client may register for (RFC 7591). Default: none. */
	readonly scopes?: readonly string[];
	/** Clients with a secret, for the client_credentials grant (HTTP Basic). Others register themselves (RFC 7591). */
	readonly clients?: readonly { readonly client_id: string; readonly client_secret: string }[];
}

export interface MintClaims {
	readonly sub: string;
	readonly client_id: string;
	readonly aud: string | readonly string[];
	/** Space-delimited, or a list. Default: none. */
	readonly scope?: string | readonly string[];
	/** NumericDate: seconds since 1970, also in the past. Default: in an hour. */
	readonly exp?: number;
}

export interface AuthorizationServer {
	readonly issuer: string;
	/** The URL of the JWK Set. */
	readonly jwks: string;
	/** Example-only: an access token with any claims, as if a client had asked for it. */
	mint(claims: MintClaims): Promise<string>;
	close(): Promise<void>;
}

async function createKey(): Promise<{ privateKey: CryptoKey; jwk: JWK }> {
	const { privateKey } = await generateKeyPair(ALG, { extractable: true });
	return { privateKey, jwk: { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: ALG, use: "sig" } };
}

async function listen(port: number): Promise<{ server: Server; origin: string }> {
	const server = createServer();
	await new Promise<void>((resolve, reject) => {
		server.once("error", reject).listen(port, "127.0.0.1", resolve);
	});
	return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function configuration(options: AuthorizationServerOptions, key: JWK): Configuration {
	return {
		adapter: createMemoryAdapter(),
		jwks: { keys: [key] },
		cookies: { keys: [randomUUID()] },
		clients: (options.clients ?? []).map((client) => ({
			...client,
			grant_types: ["client_credentials"],
			redirect_uris: [],
			response_types: [],
		})),
		clientDefaults: { id_token_signed_response_alg: ALG },
		clientBasedCORS: () => false,
		pkce: { required: () => true },
		responseTypes: ["code"],
		scopes: ["openid", "offline_access", ...(options.scopes ?? [])],
		features: {
			clientCredentials: { enabled: true },
			devInteractions: { enabled: false },
			dPoP: { enabled: false },
			pushedAuthorizationRequests: { enabled: false },
			registration: { enabled: true },
			resourceIndicators: {
				enabled: true,
				useGrantedResource: () => true,
				getResourceServerInfo(_ctx, indicator) {
					const allowed = options.resources(indicator);
					if (allowed === false) throw new InvalidTarget();
					// With a resource, tokens are JWTs as RFC 9068 has them, for this one audience.
					return {
						scope: allowed === true ? "" : allowed.join(" "),
						accessTokenFormat: "jwt",
						jwt: { sign: { alg: ALG } },
					};
				},
			},
			rpInitiatedLogout: { enabled: false },
			userinfo: { enabled: false },
		},
		findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
		issueRefreshToken: (_ctx, client) => client.grantTypeAllowed("refresh_token"),
		// MCP clients refresh for each of their streams at once; the second use of one token would end the grant.
		rotateRefreshToken: false,
		renderError(ctx, out) {
			ctx.type = "json";
			ctx.body = out;
		},
		ttl: {
			AccessToken: HOUR,
			AuthorizationCode: 60,
			ClientCredentials: HOUR,
			Grant: 24 * HOUR,
			IdToken: HOUR,
			Interaction: HOUR,
			RefreshToken: 24 * HOUR,
			Session: HOUR,
		},
	};
}

/** Signs in whom `login_hint` names and grants what was asked for, without asking anyone; resolves with where to go on. */
async function consent(
	provider: Provider,
	request: IncomingMessage,
	response: ServerResponse,
	resources: AuthorizationServerOptions["resources"],
): Promise<string> {
	const { params } = await provider.interactionDetails(request, response);
	const accountId = String(params.login_hint ?? DEFAULT_USER);
	const grant = new provider.Grant({ accountId, clientId: String(params.client_id) });
	grant.addOIDCScope(String(params.scope ?? ""));
	for (const indicator of [params.resource ?? []].flat().map(String)) {
		const allowed = resources(indicator);
		if (Array.isArray(allowed)) grant.addResourceScope(indicator, allowed.join(" "));
	}
	const result = { login: { accountId, remember: false }, consent: { grantId: await grant.save() } };
	return provider.interactionResult(request, response, result);
}

/**
 * An OAuth 2.1 authorization server on a loopback port, with the client_credentials, authorization_code (PKCE) and
 * refresh_token grants, dynamic client registration and resource indicators. A request for a token names one
 * resource, and the token has that one audience: a token for many tools has the audience that covers them.
 *
 * For examples and tests only: it has no users and asks nobody for consent. Whoever reaches it gets tokens.
 */
export async function startAuthorizationServer(
	options: AuthorizationServerOptions,
): Promise<AuthorizationServer> {
	const { privateKey, jwk } = await createKey();
	const { server, origin: issuer } = await listen(options.port ?? 0);
	const provider = new Provider(issuer, configuration(options, jwk));

	provider.use(async (ctx, next) => {
		// A web page whose name was rebound to 127.0.0.1 is not from here.
		if (`${ctx.protocol}://${ctx.host}` !== issuer) {
			ctx.status = 403;
			return;
		}
		if (ctx.path.startsWith("/interaction/")) {
			ctx.redirect(await consent(provider, ctx.req, ctx.res, options.resources));
			return;
		}
		// RFC 6749 section 3.3: a default, for clients that ask for no scope. Nothing can be granted without any.
		if (ctx.path === "/auth" && !ctx.query.scope) ctx.query = { ...ctx.query, scope: "openid" };
		// MCP clients look here first (RFC 8414).
		if (ctx.path === "/.well-known/oauth-authorization-server")
			ctx.path = "/.well-known/openid-configuration";
		await next();
	});
	server.on("request", provider.callback());

	return {
		issuer,
		jwks: provider.urlFor("jwks"),
		mint({ sub, client_id, aud, scope = [], exp }) {
			const now = Math.floor(Date.now() / 1000);
			const scopes = [scope].flat().join(" ");
			return new SignJWT({
				iss: issuer,
				sub,
				client_id,
				aud: typeof aud === "string" ? aud : [...aud],
				...(scopes && { scope: scopes }),
				iat: now,
				exp: exp ?? now + HOUR,
				jti: randomUUID(),
			})
				.setProtectedHeader({ alg: ALG, typ: "at+jwt", kid: jwk.kid ?? "" })
				.sign(privateKey);
		},
		close: () =>
			new Promise((resolve) => {
				server.close(() => resolve());
				server.closeAllConnections();
			}),
	};
}
