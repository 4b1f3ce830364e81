import { AsyncLocalStorage } from "node:async_hooks";
import type { RequestId } from "../../src/generated/types.ts";

/** A tool call that runs in an MCP server: it emits what a test says, when the test says so. */
export interface RunningCall {
	/** The name that the client gave it, as an argument. */
	readonly name: string;
	readonly tool: string;
	readonly id: RequestId;
	readonly signal: AbortSignal;
	/** Emits progress, with the tool, the call and the step in its text. */
	progress(step: number): Promise<void>;
	/** Asks the client's user, on the call's stream; resolves with what the client answers. */
	elicit(options?: { readonly onprogress: (progress: number) => void }): Promise<unknown>;
	/** Asks the client's user without saying for which call: on the session's own stream. */
	elicitAside(): Promise<unknown>;
	/** Asks the client's model, on the call's stream. */
	sample(): Promise<unknown>;
	/** Sends a notification that says of no call that it is for it. */
	announce(text: string): Promise<void>;
	/** Has the server end the call's stream, so that the client comes back for the rest (MCP 2025-11-25, polling). */
	closeStream(): void;
	/** Runs something as if the tool had: in its asynchronous context. What a test calls otherwise has none. */
	inContext<T>(run: () => T): T;
	/** Ends the call with a result that has the tool and the call in its text. */
	finish(): void;
}

/** The calls that run in the MCP servers of a host. */
export interface Calls {
	/** Resolves when a call of that name runs. */
	running(name: string): Promise<RunningCall>;
	/** What the MCP servers have reported as errors: a message that they cannot make anything of, and the like. */
	readonly errors: string[];
	/** To be called by a tool: resolves with the text of its result, when the test ends the call. */
	run(call: Omit<RunningCall, "finish" | "inContext">): Promise<string>;
}

export function createCalls(): Calls {
	const started = new Map<string, PromiseWithResolvers<RunningCall>>();

	function slot(name: string): PromiseWithResolvers<RunningCall> {
		const known = started.get(name);
		if (known !== undefined) return known;
		const created = withResolvers<RunningCall>();
		started.set(name, created);
		return created;
	}

	return {
		errors: [],
		running: (name) => slot(name).promise,
		async run(call) {
			const finished = withResolvers<void>();
			slot(call.name).resolve({ ...call, inContext: AsyncLocalStorage.snapshot(), finish: finished.resolve });
			await finished.promise;
			return resultText(call);
		},
	};
}

interface Named {
	readonly tool: string;
	readonly name: string;
}

export function resultText({ tool, name }: Named): string {
	return `${tool} ${name} result`;
}

export function progressText({ tool, name }: Named, step: number): string {
	return `${tool} ${name} ${step}`;
}

interface PromiseWithResolvers<T> {
	readonly promise: Promise<T>;
	readonly resolve: (value: T) => void;
}

function withResolvers<T>(): PromiseWithResolvers<T> {
	let resolve: (value: T) => void = () => undefined;
	const promise = new Promise<T>((settle) => {
		resolve = settle;
	});
	return { promise, resolve };
}
