import { once } from "node:events";
import { createMemoryEventLog, type EventLog, type EventLogLimits } from "mcp-resume-guard";

/** An event log whose appends and writes can be waited for. */
export interface ObservedLog extends EventLog {
	/** How many events have been marked as written. */
	readonly written: number;
	/** Resolves when a message that contains the text has been appended, in whichever session. */
	appended(text: string): Promise<void>;
	/** Resolves when nobody holds the stream. */
	released(session: string, stream: string): Promise<void>;
}

export function createObservedLog(limits?: Partial<EventLogLimits>): ObservedLog {
	const log = createMemoryEventLog(limits);
	const changes = new EventTarget();
	const changed = () => changes.dispatchEvent(new Event("change"));
	const messages: string[] = [];
	let written = 0;

	async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
		for (;;) {
			// Listened for before the look, so that nothing is missed in between.
			const change = once(changes, "change");
			if (await condition()) return;
			await change;
		}
	}

	return {
		...log,
		async append(session, stream, event) {
			const id = await log.append(session, stream, event);
			messages.push(event.message);
			changed();
			return id;
		},
		async markWritten(session, id, holder) {
			const isMarked = await log.markWritten(session, id, holder);
			if (isMarked) written += 1;
			return isMarked;
		},
		async release(session, stream, holder) {
			await log.release(session, stream, holder);
			changed();
		},
		get written() {
			return written;
		},
		appended: (text) => until(() => messages.some((message) => message.includes(text))),
		released: (session, stream) => until(async () => (await log.holder(session, stream)) === undefined),
	};
}
