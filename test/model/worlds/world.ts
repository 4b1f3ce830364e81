import { createMemoryEventLog } from "../../../src/events/memory.ts";
import type { PolicyData } from "../../../src/generated/types.ts";
import { answerGet } from "../../../src/resume/get.ts";
import { endSession, type Ground } from "../../../src/resume/ground.ts";
import { sessionKey } from "../../../src/sessions/key.ts";
import { createMemorySessionStore } from "../../../src/sessions/memory.ts";
import { guardOf } from "../guard.ts";
import type { Claims } from "../reference/claims.ts";
import { createReference, type Reference } from "../reference/decide.ts";
import type { Need } from "../reference/question.ts";
import { labelOf, type Universe } from "../universe.ts";
import { expiryOf, START } from "./clock.ts";
import { type MemoGuard, memoGuard } from "./memo.ts";
import { createReader, type Reader } from "./sink.ts";

/** The machine that worlds run on, one after the other: the real guard, event log and session store. */
export interface Stage {
	readonly universe: Universe;
	readonly data: PolicyData;
	readonly reference: Reference;
	readonly memo: MemoGuard;
	readonly ground: Ground;
	/** How many events of one principal the log holds. */
	readonly capacity: number;
	/** An id of another principal's stream. */
	readonly foreignId: string;
	/** What a refused resume was last remembered by. */
	readonly slot: { value: string };
	setEra(era: number): void;
}

export async function createStage(
	universe: Universe,
	data: PolicyData,
	capacity: number,
	setEra: (era: number) => void,
): Promise<Stage> {
	const guard = await guardOf(data);
	const reference = createReference(guard.data);
	const memo = memoGuard(guard, reference);
	const sessions = createMemorySessionStore();
	const slot = { value: "" };
	const events = createMemoryEventLog({ eventsPerPrincipal: capacity });
	const ground: Ground = {
		guard: memo.guard,
		sessions: {
			...sessions,
			repeated(key, stream, value, ttl) {
				slot.value = value;
				return sessions.repeated(key, stream, value, ttl);
			},
		},
		events,
		resourceMetadata: undefined,
		stateless: false,
		listCoveredTools: false,
		observe: () => {},
		report(error) {
			throw error;
		},
	};
	// A store that becomes empty is cleared, which costs more than a world.
	await sessions.open({ key: "foreign", binding: bob, transport: "streamable-http", opened_at: START });
	await events.open("foreign", "foreign");
	const foreignId = await events.start("foreign", STREAM);
	return { universe, data, reference, memo, ground, capacity, foreignId, slot, setEra };
}

const STREAM = "s";

/** One stream's events: the tool of each. The last of each tool is its response. */
export type Layout = readonly string[];

/** Who comes. */
export interface Visitor {
	readonly name: string;
	/** Claims, but for the time; `undefined`: no token. */
	readonly claims: Claims | undefined;
	/** Its token has expired. */
	readonly isLate?: boolean;
}

const bob = { iss: "https://as.example.com", sub: "bob", aud: ["https://mcp.example.com"], scope: [] };

export const alice = { iss: "https://as.example.com", sub: "alice", client_id: "desktop" };

/** Positions on the stream: 0 is before the first event, where it starts. */
export type CursorAt = number | "ahead" | "foreign" | "unknown";

export type Action =
	| { readonly kind: "emit" | "expire" | "end" | "leave" }
	/** `take`: leaves after so many events; absent: stays for as long as it may. */
	| { readonly kind: "resume"; readonly by: Visitor; readonly at: CursorAt; readonly take?: number };

/** What a resume was answered with. */
export type Answered =
	| { readonly kind: "whole"; readonly status: number; readonly body: string }
	| { readonly kind: "stream"; readonly reader: Reader };

/** What there is to see of a world between two actions. */
export interface State {
	/** Events appended, and how many of them were written, acknowledged by the client, and received by it. */
	readonly appended: number;
	readonly written: number;
	readonly acknowledged: number;
	readonly received: number;
	readonly isAlive: boolean;
	readonly era: number;
	/** Whose connection is open, and in which era it began. */
	readonly attached: { readonly name: string; readonly era: number } | undefined;
	readonly slot: string;
}

export interface World {
	readonly layout: Layout;
	act(action: Action): Promise<Answered | undefined>;
	state(): Promise<State>;
	idAt(cursor: CursorAt): string;
	/** The position of an id of this world's stream. */
	positionOf(id: string): number | undefined;
	/** The message of the event at a position. */
	messageAt(position: number): string;
	/** The open connection, with where it began. */
	readonly attached: () => Reader | undefined;
	close(): Promise<void>;
}

let worlds = 0;

/** A world after its beginning: `sent` events were written to the POST's own response, which has dropped. */
export async function createWorld(stage: Stage, layout: Layout, binding: Need, sent: number): Promise<World> {
	const { universe, ground, memo } = stage;
	const { events, sessions } = ground;
	worlds += 1;
	const sessionId = `world-${worlds}`;
	const key = sessionKey(sessionId);
	let era = 0;
	stage.setEra(era);
	stage.slot.value = "";
	await sessions.open({
		key,
		binding: { ...alice, aud: [...binding.aud], scope: [...binding.scope] },
		transport: "streamable-http",
		opened_at: START,
	});
	await events.open(key, sessionId);
	const tools = [...new Set(layout)];
	const labels = new Map(tools.map((tool) => [tool, labelOf(universe, tool)]));
	const labelAt = (tool: string) => labels.get(tool) ?? { aud: [], scope: [] };
	await events.openStream(
		key,
		STREAM,
		tools.map((tool) => ({ request_id: tool, label: labelAt(tool) })),
	);
	const ids = [await events.start(key, STREAM)];
	const [, epoch = ""] = (ids[0] ?? "").split(".");
	memo.setEpoch(epoch);

	const isLast = (position: number) => !layout.slice(position).includes(layout[position - 1] ?? "");
	const messageAt = (position: number) => {
		const about = { position };
		return JSON.stringify(
			isLast(position)
				? { jsonrpc: "2.0", id: layout[position - 1], result: about }
				: { jsonrpc: "2.0", method: "notifications/message", params: about },
		);
	};
	const emit = async () => {
		const position = ids.length;
		const tool = layout[position - 1];
		if (tool === undefined) throw new Error("there is nothing more to emit");
		const id = await events.append(key, STREAM, {
			message: messageAt(position),
			label: labelAt(tool),
			request_id: tool,
			terminal: isLast(position),
		});
		ids.push(id);
	};
	let received = sent;
	for (let position = 1; position <= sent; position++) {
		await emit();
		await events.markWritten(key, ids[position] ?? "");
	}

	const positionOf = (id: string) => {
		const at = ids.indexOf(id);
		return at < 0 ? undefined : at;
	};
	/** The position of the newest event that has been written; 0 also when the session has ended. */
	async function countWritten(): Promise<number> {
		let written = 0;
		for (const [position, id] of ids.entries()) {
			const { position: found } = await events.locate(key, id);
			if (found === "ahead" || found === "unknown") break;
			written = position;
		}
		return written;
	}

	let attached: { reader: Reader; name: string; era: number } | undefined;
	const note = (reader: Reader) => {
		for (const { id } of reader.frames) {
			if (id !== undefined) received = Math.max(received, positionOf(id) ?? 0);
		}
	};

	const idAt = (cursor: CursorAt): string => {
		switch (cursor) {
			case "foreign":
				return stage.foreignId;
			case "unknown":
				return "nonsense";
			case "ahead":
				return `${STREAM}.${epoch}.${layout.length + 2}`;
			default:
				return ids[cursor] ?? `${STREAM}.${epoch}.${cursor + 1}`;
		}
	};

	async function resume({ by, at, take }: Extract<Action, { kind: "resume" }>): Promise<Answered> {
		const answer = await answerGet(ground, {
			method: "GET",
			transport: "streamable-http",
			headers: {
				accept: "text/event-stream",
				"mcp-protocol-version": "2025-11-25",
				"last-event-id": idAt(at),
			},
			sessionId,
			presented: by.claims && { ...by.claims, exp: expiryOf(by.isLate ? era - 2 : era) },
		});
		if ("body" in answer) return { kind: "whole", status: answer.status, body: answer.body };
		const count = (frames: readonly { id?: string; event?: string }[]) =>
			frames.filter(({ id, event }) => id !== undefined && event === "message").length;
		const reader = createReader((frames) => take !== undefined && count(frames) >= take);
		const before = attached;
		const served = answer.stream(reader.sink);
		await settled();
		if (before !== undefined) note(before.reader);
		note(reader);
		if (reader.state() === "open") attached = { reader, name: by.name, era };
		else await served;
		return { kind: "stream", reader };
	}

	return {
		layout,
		messageAt,
		positionOf,
		idAt,
		attached: () => attached?.reader,
		async act(action) {
			switch (action.kind) {
				case "emit":
					await emit();
					break;
				case "expire":
					era += 1;
					stage.setEra(era);
					return undefined;
				case "end":
					await endSession(ground, key);
					break;
				case "leave":
					attached?.reader.leave();
					break;
				default: {
					const answered = await resume(action);
					if (attached !== undefined && attached.reader.state() !== "open") attached = undefined;
					return answered;
				}
			}
			await settled();
			if (attached !== undefined) note(attached.reader);
			if (attached !== undefined && attached.reader.state() !== "open") attached = undefined;
			return undefined;
		},
		async state() {
			const isAlive = (await sessions.find(key)) !== undefined;
			const written = await countWritten();
			const last = ids[written];
			const [first] = last === undefined ? [] : await events.unacknowledged(key, last);
			return {
				appended: ids.length - 1,
				written,
				acknowledged: first === undefined ? written : (positionOf(first.id) ?? 0) - 1,
				received,
				isAlive,
				era,
				attached: attached && { name: attached.name, era: attached.era },
				slot: stage.slot.value,
			};
		},
		async close() {
			attached?.reader.leave();
			await endSession(ground, key);
			await settled();
		},
	};
}

/** Everything that has been set going has come to rest: nothing here waits for more than promises. */
function settled(): Promise<void> {
	return new Promise((resolve) => {
		setImmediate(resolve);
	});
}
