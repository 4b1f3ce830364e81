import type { RequestId } from "../generated/types.ts";
import { readToolList } from "../wire/messages.ts";
import type { Found, Ground } from "./ground.ts";

/** A message of the server's as it may be shown to the token of its call. */
export type Show = <T>(message: T) => T;

/**
 * Leaves the tools that the token may not call, by the `call` policy, out of the responses to `lists`: requests of
 * tools/list, each of one page.
 */
export function createShow({ guard }: Ground, { facts }: Found, lists: ReadonlySet<RequestId>): Show {
	const mayCall = ({ name }: { name: string }) => guard.call({ ...facts, tool: name }).outcome === "proceed";
	return (message) => {
		const list = readToolList(message);
		if (list === undefined || !lists.has(list.id)) return message;
		return { ...message, result: { ...list.result, tools: list.result.tools.filter(mayCall) } };
	};
}
