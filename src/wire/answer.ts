/** What goes back to the client: a whole response, or the head of an SSE stream and how to write it. */
export type Answer = WholeAnswer | StreamAnswer;

export interface WholeAnswer {
	readonly status: number;
	/** Names in lower case. */
	readonly headers: Readonly<Record<string, string>>;
	readonly body: string;
}

export interface StreamAnswer {
	readonly status: 200;
	readonly headers: Readonly<Record<string, string>>;
	/** Writes the stream; resolves when it has been ended or cut. */
	readonly stream: (sink: Sink) => Promise<void>;
}

/** The response body of one connection, as a host gives it. */
export interface Sink {
	/** Writes text and resolves when more may be written; at once, and for nothing, when the connection is closed. */
	write(text: string): Promise<void>;
	/** A clean end. */
	end(): void;
	/** No clean end: the client sees a broken connection. Nothing after a clean end. */
	cut(): void;
	/** Whether bytes that are written now may still reach the client. */
	isOpen(): boolean;
	/** Calls back once, when the connection is closed, by whichever side. */
	onClose(listener: () => void): void;
}

/** The head of every SSE stream. */
export const sseHeaders: Readonly<Record<string, string>> = {
	"content-type": "text/event-stream",
	"cache-control": "no-cache, no-transform",
	"x-accel-buffering": "no",
};
