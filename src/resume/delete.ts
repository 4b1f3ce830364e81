import type { WholeAnswer } from "../wire/answer.ts";
import { refusalAnswer } from "../wire/refusal.ts";
import { endSession, findSession, type Ground, type Incoming, settle } from "./ground.ts";

/** Answers a DELETE: the principal's own logout, which needs continuity only. */
export async function answerDelete(ground: Ground, incoming: Incoming): Promise<WholeAnswer> {
	const found = await findSession(ground, incoming);
	const decision = ground.guard.session(found.facts);
	await settle(ground, { moment: "session", decision, session: found.key });
	if (decision.outcome !== "proceed") return refusalAnswer(decision, ground.resourceMetadata);
	if (found.key !== undefined) await endSession(ground, found.key);
	return { status: 204, headers: {}, body: "" };
}
