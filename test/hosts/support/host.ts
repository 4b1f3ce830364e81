import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { McpServer } from "@modelcontextprotocol/server";
import type { PolicyData, SessionMatch, TokenVerifierOptions } from "mcp-resume-guard";
import { onTestFinished } from "vitest";
import { createGates, type Gates } from "../../../examples/fastify/gates.ts";
import type { EndpointOptions } from "../../../src/hosts/endpoint.ts";
import { sessionKey } from "../../../src/sessions/key.ts";
import { createSigner, ISSUER, sign } from "../../tokens/support.ts";
import { openSession, type RawClient } from "./client.ts";
import type { Exchange } from "./http.ts";
import { createObservedLog, type ObservedLog } from "./log.ts";
import { createTestServer } from "./tools.ts";

export const SERVER = "https://mcp.example.com";
export const SEARCH = `${SERVER}/tools/search`;
export const FETCH = `${SERVER}/tools/fetch`;

export const data: PolicyData = {
	resources: [SERVER, "mcp://srv", "mcp://srv/v2"],
	tools: {
		search: { aud: [SEARCH], scope: [] },
		fetch: { aud: [FETCH], scope: [] },
		confirm: { aud: [FETCH], scope: [] },
		whoami: { aud: [], scope: [] },
		announce: { aud: [], scope: [] },
		bulk: { aud: [], scope: [] },
		log: { aud: [], scope: [] },
		whence: { aud: [], scope: [] },
		poll: { aud: [], scope: [] },
		straggle: { aud: [], scope: [] },
	},
	coverage: { [SERVER]: [`${SERVER}/tools/*`] },
};

/** A host under guard, on a port of its own. */
export interface Host {
	readonly origin: string;
	endSessions(match: SessionMatch): Promise<number>;
	/** As an operator stops it: resolves when the server has closed. */
	close(): Promise<void>;
}

/** Starts a host, with options of the guard that all hosts have. */
export type StartHost = (options: EndpointOptions, createServer: () => McpServer) => Promise<Host>;

/** A host in a test, and all that a test does with it. */
export interface Running extends Host {
	readonly log: ObservedLog;
	readonly gates: Gates;
	open(token: string): Promise<RawClient>;
	/** Breaks the connection of a stream; resolves when the host has noticed. */
	drop(client: RawClient, stream: Exchange): Promise<void>;
}

export interface RunOptions extends Partial<Omit<EndpointOptions, "data" | "events">> {
	/** Members of the policy data to set otherwise. */
	readonly data?: Partial<PolicyData>;
	/** Where the policy data is to be, and is watched. */
	readonly dataFile?: string;
	readonly log?: ObservedLog;
	readonly createServer?: (gates: Gates) => McpServer;
}

const signer = await createSigner("ES256", "1");
// Compiled once, and not for each of many hosts.
const policy = await WebAssembly.compile(await readFile("src/generated/policy.wasm"));

/** How the hosts of these tests verify tokens. */
export const tokens: TokenVerifierOptions = { issuer: ISSUER, jwks: { keys: [signer.jwk] } };

/** An access token; `aud` is SERVER unless `claims` say otherwise. */
export const token = (claims: Record<string, unknown> = {}): Promise<string> =>
	sign(signer, { aud: SERVER, ...claims });

/** Starts a host for one test. */
export async function run(
	start: StartHost,
	{ log = createObservedLog(), createServer = createTestServer, dataFile, ...options }: RunOptions = {},
): Promise<Running> {
	const gates = createGates();
	const whole = { ...data, ...options.data };
	if (dataFile !== undefined) writeFileSync(dataFile, JSON.stringify(whole));
	const host = await start(
		{
			policy,
			...options,
			...(dataFile === undefined ? { data: whole } : { data: dataFile, watch: true }),
			tokens: options.tokens ?? tokens,
			events: log,
		},
		() => createServer(gates),
	);
	let closing: Promise<void> | undefined;
	const close = () => {
		closing ??= host.close();
		return closing;
	};
	onTestFinished(close);
	return {
		...host,
		close,
		log,
		gates,
		open: (opener) => openSession(host.origin, opener),
		async drop({ session }, stream) {
			const [name = ""] = stream.cursor?.split(".") ?? [];
			await stream.drop();
			await log.released(sessionKey(session), name);
		},
	};
}
