import type { RequestId } from "../generated/types.ts";
import { isToolList } from "../wire/messages.ts";
import type { Found, Ground } from "./ground.ts";

/** A message of the server's as it may be shown to the token of its call. */
export type Show = <T>(message: T) => T;

/**
 * Leaves the tools that the token may not call, by the `call` policy, out of the responses to `lists`: requests of
 * tools/list, each of one page.
 */
export function createShow({ guard }: Ground, { facts }: Found, lists: ReadonlySet<RequestId>): Show {
	const mayCall = ({ name }: { name: string }) =>
		guard.probe.call({ ...facts, tool: name }).outcome === "proceed";
	return (message) => {
		if (!isToolList(message) || !lists.has(message.id)) return message;
		const { result } = message;
		return { ...message, result: { ...result, tools: result.tools.filter(mayCall) } };
	};
}
