import { createMemoryEventLog, type EventLog, type NewEvent } from "mcp-resume-guard";

/** An event as it was appended, its message parsed. */
export interface Appended extends Omit<NewEvent, "message"> {
	readonly stream: string;
	readonly id: string;
	readonly message: {
		readonly method?: string;
		readonly params?: { readonly message?: string; readonly data?: unknown };
	};
}

/** An event log, and all that is appended to it, in order. */
export function createOverheardLog(): { readonly events: EventLog; readonly appended: readonly Appended[] } {
	const events = createMemoryEventLog();
	const appended: Appended[] = [];
	return {
		appended,
		events: {
			...events,
			async append(session, stream, event) {
				const id = await events.append(session, stream, event);
				appended.push({ ...event, stream, id, message: JSON.parse(event.message) });
				return id;
			},
		},
	};
}
