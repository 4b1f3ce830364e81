import {
	Client,
	type OAuthClientProvider,
	StreamableHTTPClientTransport,
	UnauthorizedError,
} from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { decodeJwt } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { type Host, startHost } from "./support/host.ts";

const REDIRECT = "http://127.0.0.1:9/callback";
const info = { name: "test", version: "1.0.0" };

/** What a browser does with an authorization URL, up to the redirect back to the client. */
async function browse(url: URL): Promise<URLSearchParams> {
	const cookies = new Map<string, string>();
	let at = url;
	while (!at.href.startsWith(REDIRECT)) {
		const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
		const response = await fetch(at, { redirect: "manual", headers: { cookie } });
		for (const set of response.headers.getSetCookie()) {
			const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
			cookies.set(name, value);
		}
		at = new URL(response.headers.get("location") ?? "", at);
	}
	return at.searchParams;
}

/** A client that keeps all it learns in memory. */
function createProvider(host: Host) {
	type Kept<T extends (...args: never[]) => unknown> = Awaited<ReturnType<T>>;
	let information: Kept<OAuthClientProvider["clientInformation"]>;
	let tokens: Kept<OAuthClientProvider["tokens"]>;
	let discovery: Kept<NonNullable<OAuthClientProvider["discoveryState"]>>;
	let verifier = "";
	const kept = {
		url: new URL("about:blank"),
		/** The access token is no good any more; the refresh token is. */
		expire() {
			if (tokens !== undefined) tokens = { ...tokens, access_token: "expired" };
		},
		accessToken: () => tokens?.access_token ?? "",
	};
	const provider: OAuthClientProvider = {
		redirectUrl: REDIRECT,
		clientMetadata: {
			redirect_uris: [REDIRECT],
			client_name: "test",
			grant_types: ["authorization_code", "refresh_token"],
			token_endpoint_auth_method: "none",
		},
		clientInformation: () => information,
		saveClientInformation: (value) => {
			information = value;
		},
		tokens: () => tokens,
		saveTokens(value) {
			tokens = value;
			host.keepSecret(value.access_token);
		},
		redirectToAuthorization: (url) => {
			kept.url = url;
		},
		saveCodeVerifier: (value) => {
			verifier = value;
		},
		codeVerifier: () => verifier,
		discoveryState: () => discovery,
		saveDiscoveryState: (value) => {
			discovery = value;
		},
	};
	return { provider, kept };
}

test("a client of SDK v1 finds the authorization server, signs in, and calls", async () => {
	const host = await startHost();
	const { provider, kept } = createProvider(host);
	const open = () => new TransportV1(new URL(host.mcp), { authProvider: provider as never });
	const refused = open();
	await expect(new ClientV1(info).connect(refused as never)).rejects.toThrow(/Unauthorized/);
	await refused.finishAuth((await browse(kept.url)).get("code") ?? "");

	const client = new ClientV1(info);
	onTestFinished(() => client.close());
	await client.connect(open() as never);
	expect(decodeJwt(kept.accessToken())).toMatchObject({
		iss: host.authorizationServer.issuer,
		aud: host.mcp,
	});
	expect(await client.callTool({ name: "fetch", arguments: { id: "a" } })).toMatchObject({
		content: [{ text: "the text of document a" }],
	});
});

test("a client of SDK v2 does so too, and resumes after it has refreshed a token that is no good any more", async () => {
	const host = await startHost();
	const { provider, kept } = createProvider(host);
	const open = () => {
		const reconnectionOptions = {
			initialReconnectionDelay: 50,
			maxReconnectionDelay: 1_000,
			reconnectionDelayGrowFactor: 1.5,
			maxRetries: 2,
		};
		return new StreamableHTTPClientTransport(new URL(host.mcp), {
			authProvider: provider,
			reconnectionOptions,
		});
	};
	const refused = open();
	await expect(new Client(info).connect(refused)).rejects.toThrow(UnauthorizedError);
	await refused.finishAuth(await browse(kept.url));

	const client = new Client(info);
	const transport = open();
	onTestFinished(() => client.close());
	await client.connect(transport);
	const session = transport.sessionId ?? "";
	host.keepSecret(session);
	const progress: number[] = [];
	let primed = () => {};
	const isPrimed = new Promise<void>((resolve) => {
		primed = resolve;
	});
	const call = client.callTool(
		{ name: "search", arguments: { query: "x", pages: 5, gate: "rest" } },
		{ onresumptiontoken: () => primed(), onprogress: (update) => void progress.push(update.progress) },
	);
	await isPrimed;
	const before = kept.accessToken();
	kept.expire();
	await host.drop(session);
	await host.open(session, "rest");
	expect(await call).toMatchObject({ content: [{ text: "5 pages about x" }] });
	expect(progress).toEqual([1, 2, 3, 4, 5]);
	expect(decodeJwt(kept.accessToken())).toMatchObject({ aud: host.mcp, sub: "alice" });
	expect(kept.accessToken()).not.toBe(before);
});
