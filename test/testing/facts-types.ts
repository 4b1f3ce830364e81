import type { ResumeGuard } from "../../src/index.ts";
import { type FactsOf, facts } from "../../src/testing/index.ts";

/** Nobody calls it: the compiler reads it. What is misuse does not compile. */
export function types(guard: ResumeGuard): void {
	const asked: FactsOf<"resume"> = facts.resume({ open: [{ tool: "a", aud: [], scope: [] }] });
	const moment: "resume" = asked.moment;
	guard.resume(asked);
	// @ts-expect-error the moment is not any
	const other: "call" = asked.moment;
	// @ts-expect-error a call names what it is of
	facts.call({});
	// @ts-expect-error one of the three, not two
	facts.call({ tool: "a", rpc: "b" });
	// @ts-expect-error a cursor is of resume
	facts.session({ cursor: { last_event_id: "1" } });
	// @ts-expect-error there is no such position
	facts.resume({ cursor: { position: "lost" } });
	// @ts-expect-error an event has a label
	facts.resume({ pending: [{ id: "42", tool: "a" }] });
	// @ts-expect-error an event there is
	facts.delivery({});
	// @ts-expect-error there is no such method
	facts.session({ request: { method: "PUT" } });
	// @ts-expect-error exp is a number
	facts.session({ presented: { exp: "tomorrow" } });
	// @ts-expect-error a member that there is not
	facts.session({ presentd: null });
	// @ts-expect-error of a tool or of a method
	facts.event("42", { tool: "a", rpc: "b" });
	void [moment, other];
}
