import type { Facts } from "mcp-resume-guard";
import { listTools } from "../../questions.ts";

const { presented, session, ...question } = listTools("narrow");

function principal(claims: typeof presented) {
	const { iss, sub, client_id, aud, scope } = claims as Record<string, string>;
	return { iss, sub, client_id, aud: [aud], scope: scope?.split(" ").sort() };
}

/** What the guard makes of that question: without it, so that its modules are not loaded where it is not asked. */
export const facts = {
	...question,
	moment: "session",
	presented: { ...principal(presented), exp: presented?.exp },
	session: { ...session, binding: principal(session?.binding) },
} as Facts;
