import type { PolicyData } from "mcp-resume-guard";
import { expect, onTestFinished } from "vitest";
import { numberOf } from "../../../examples/demo/events.ts";
import type { MintClaims } from "../../../examples/fastify/authorization-server.ts";
import { type Example, type ExampleOptions, startExample } from "../../../examples/fastify/host.ts";
import type { EmittedEvent } from "../../../examples/fastify/unguarded.ts";
import { createTestServer, testTools } from "./server.ts";

export const BOTH = "https://mcp.example.com";
export const SEARCH = "https://mcp.example.com/tools/search";
export const FETCH = "https://mcp.example.com/tools/fetch";

export interface Host extends Example {
	/** What the host has stored for its clients, in order. */
	readonly emitted: readonly EmittedEvent[];
	/** The lines of its log, from level trace on. */
	readonly logged: readonly string[];
	/** A token; by default of alice, through the client `desktop`, for both tools. */
	mint(claims?: Partial<MintClaims>): Promise<string>;
	/** Cuts the open streams of a session. */
	drop(session: string): Promise<void>;
	/** Lets a tool go on that waits at this gate. */
	open(session: string, gate: string): Promise<void>;
	/** Resolves when an event that matches has been stored. */
	stored(matches: (event: EmittedEvent) => boolean): Promise<EmittedEvent>;
	/** What must not be in the log. */
	keepSecret(secret: string): void;
}

export interface HostOptions extends Omit<ExampleOptions, "data" | "logger" | "onEvent"> {
	readonly data?: Partial<PolicyData>;
}

/** Starts the example host for one test, which fails if a session id or a token is in a line of the log. */
export async function startHost({ data = {}, ...options }: HostOptions = {}): Promise<Host> {
	const emitted: EmittedEvent[] = [];
	const waiting = new Set<() => void>();
	const logged: string[] = [];
	const secrets = new Set<string>();
	const example = await startExample({
		createServer: createTestServer,
		...options,
		data: { tools: testTools, ...data },
		logger: { level: "trace", stream: { write: (line: string) => void logged.push(line) } },
		onEvent(event) {
			emitted.push(event);
			for (const look of [...waiting]) look();
		},
	});
	onTestFinished(async () => {
		await example.close();
		expect(logged.filter((line) => [...secrets].some((secret) => line.includes(secret)))).toEqual([]);
	});
	const door = async (path: string, body: object) => {
		const headers = { "content-type": "application/json" };
		const response = await fetch(example.origin + path, {
			method: "POST",
			headers,
			body: JSON.stringify(body),
		});
		expect(response.ok).toBe(true);
	};

	return {
		...example,
		emitted,
		logged,
		async mint(claims) {
			const token = await example.authorizationServer.mint({
				sub: "alice",
				client_id: "desktop",
				aud: BOTH,
				...claims,
			});
			secrets.add(token);
			return token;
		},
		drop: (session) => door("/dev/drop", { session }),
		open: (session, gate) => door("/dev/open", { session, gate }),
		stored(matches) {
			return new Promise((resolve) => {
				const look = () => {
					const event = emitted.find(matches);
					if (event === undefined) return;
					waiting.delete(look);
					resolve(event);
				};
				waiting.add(look);
				look();
			});
		},
		keepSecret: (secret) => void secrets.add(secret),
	};
}

/** The decisions in the log that are not `proceed`, as `moment code`. */
export function refusals({ logged }: Host): string[] {
	return logged.flatMap((line) => {
		const { mcp } = JSON.parse(line) as { mcp?: { moment: string; outcome?: string; code: string } };
		return mcp?.outcome === undefined || mcp.outcome === "proceed" ? [] : [`${mcp.moment} ${mcp.code}`];
	});
}

/** The numbers of ids within their streams. */
export function numbersOf(ids: readonly string[]): number[] {
	return ids.map((id) => Number(numberOf(id)));
}
