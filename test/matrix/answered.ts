import { createMemoryEventLog, type EventLogLimits, type MemoryEventLog } from "mcp-resume-guard";

/** An event log that tells whether a call has its response, sent or not. */
export interface AnsweredLog extends MemoryEventLog {
	isOpen(session: string, id: string | number): Promise<boolean>;
}

export function createAnsweredLog(limits?: Partial<EventLogLimits>): AnsweredLog {
	const log = createMemoryEventLog(limits);
	const answered = new Set<string>();
	const nameOf = (session: string, id: string | number) => `${session} ${typeof id} ${id}`;
	return {
		...log,
		async append(session, stream, event) {
			const appended = await log.append(session, stream, event);
			if (event.terminal && event.request_id !== undefined) answered.add(nameOf(session, event.request_id));
			return appended;
		},
		isOpen: async (session, id) =>
			!answered.has(nameOf(session, id)) && (await log.openCall(session, id)) !== undefined,
	};
}
