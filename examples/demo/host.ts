import { createMemoryEventLog, type MemoryEventLog, type PolicyData } from "mcp-resume-guard";
import { type Example, startExample } from "../fastify/host.ts";
import type { EmittedEvent } from "../fastify/unguarded.ts";

/** A decision as the guard logs it. */
export interface LoggedDecision {
	readonly moment: string;
	readonly outcome: string;
	readonly code: string;
	readonly cursor?: string;
	readonly position?: string;
	readonly drift?: readonly string[];
	readonly held?: {
		readonly event_id?: string;
		readonly tool?: string;
		readonly missing: { readonly aud: readonly string[]; readonly scope: readonly string[] };
	};
}

export interface DemoHost {
	readonly example: Example;
	/** What the host has stored for its clients, in order. */
	readonly emitted: readonly EmittedEvent[];
	/** The guard's event log. */
	readonly log: MemoryEventLog;
	mint(aud: string | readonly string[], sub?: string): Promise<string>;
	/** Cuts the session's open streams. */
	drop(session: string): Promise<void>;
	/** Lets a tool go on, and resolves when the host has stored an event of it that matches. */
	goOn(session: string, gate: string, until: (event: EmittedEvent) => boolean): Promise<void>;
}

export interface DemoHostOptions {
	readonly guarded: boolean;
	readonly data?: Partial<PolicyData>;
	readonly onDecision?: (decision: LoggedDecision) => void;
}

/** Starts the example host for one run and closes it afterwards. */
export async function withHost<T>(
	{ guarded, data = {}, onDecision = () => {} }: DemoHostOptions,
	run: (host: DemoHost) => Promise<T>,
): Promise<T> {
	const emitted: EmittedEvent[] = [];
	const waiting = new Set<() => void>();
	const log = createMemoryEventLog();
	const example = await startExample({
		guarded,
		data,
		guard: { events: log },
		onEvent(event) {
			emitted.push(event);
			for (const look of [...waiting]) look();
		},
		logger: {
			level: "debug",
			stream: {
				write(line: string) {
					const { mcp } = JSON.parse(line) as { mcp?: LoggedDecision };
					if (mcp !== undefined) onDecision(mcp);
				},
			},
		},
	});
	const door = async (path: string, body: object) => {
		const headers = { "content-type": "application/json" };
		await fetch(example.origin + path, { method: "POST", headers, body: JSON.stringify(body) });
	};

	try {
		return await run({
			example,
			emitted,
			log,
			mint: (aud, sub = "alice") => example.authorizationServer.mint({ sub, client_id: "desktop", aud }),
			drop: (session) => door("/dev/drop", { session }),
			async goOn(session, gate, until) {
				const happened = new Promise<void>((resolve) => {
					const look = () => {
						if (!emitted.some(until)) return;
						waiting.delete(look);
						resolve();
					};
					waiting.add(look);
				});
				await door("/dev/open", { session, gate });
				await happened;
			},
		});
	} finally {
		await example.close();
	}
}
