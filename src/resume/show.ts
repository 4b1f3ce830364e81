import type { RequestId } from "../generated/types.ts";
import { isToolList } from "../wire/messages.ts";
import type { Found, Ground } from "./ground.ts";

/** A message of the server's as it may be shown to the token of its call. */
export type Show = <T>(message: T) => T;

/**
 * Leaves the tools that the token may not call, by the `call` policy, out of the responses to tools/list, each of one page.
 *
 * @param lists the requests of tools/list; `undefined`: whatever looks like a response to one
 */
export function createShow({ guard }: Ground, { facts }: Found, lists?: ReadonlySet<RequestId>): Show {
	const request = { ...facts.request, method: "POST" } as const;
	const mayCall = ({ name }: { name: string }) =>
		guard.probe.call({ ...facts, request, tool: name }).outcome === "proceed";
	return (message) => {
		if (!isToolList(message) || lists?.has(message.id) === false) return message;
		const { result } = message;
		return { ...message, result: { ...result, tools: result.tools.filter(mayCall) } };
	};
}
