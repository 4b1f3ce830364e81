/** The parts of an event id `<stream>.<epoch>.<n>`. */
export interface EventId {
	readonly stream: string;
	readonly epoch: string;
	readonly n: number;
}

// An id stands on an SSE `id:` line and comes back in an HTTP header: visible ASCII survives both.
const STREAM = /^[\x21-\x7e]{1,512}$/;
// Read from the right: a stream's name may have dots in it, the other two have none.
const EVENT_ID = /^([\x21-\x7e]{1,512})\.([A-Za-z0-9_-]{1,64})\.([1-9][0-9]{0,15})$/;

/** A `TypeError` for a name that cannot be part of an id: 1 to 512 characters of visible ASCII can. */
export function checkStreamName(stream: string): void {
	if (!STREAM.test(stream)) throw new TypeError("a stream's name has 1 to 512 characters of visible ASCII");
}

export function formatEventId(stream: string, epoch: string, n: number): string {
	return `${stream}.${epoch}.${n}`;
}

/** `undefined`: of another shape or longer than an id can be, so never issued by an event log. */
export function parseEventId(id: string): EventId | undefined {
	const [, stream, epoch, digits] = EVENT_ID.exec(id) ?? [];
	if (stream === undefined || epoch === undefined) return undefined;
	const n = Number(digits);
	return Number.isSafeInteger(n) ? { stream, epoch, n } : undefined;
}
