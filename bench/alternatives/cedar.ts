import { preparsePolicySet, statefulIsAuthorized } from "@cedar-policy/cedar-wasm/nodejs";
import type { Facts, PolicyData } from "mcp-resume-guard";

// The same laws as Cedar has them, an authorization for each event. Cedar has no quantifier over a set, so that what
// stands for a resource is given with it.
const POLICIES = `
permit(principal, action, resource) when {
	context.now < context.exp &&
	principal.iss == context.binding.iss &&
	principal.sub == context.binding.sub &&
	principal.client_id == context.binding.client_id &&
	context.binding.covers.containsAll(principal.aud) &&
	principal.scope.containsAll(context.binding.scope) &&
	principal.scope.containsAll(resource.scope) &&
	principal.covers.containsAll(resource.aud)
};`;

const ID = "bench";

interface Need {
	readonly aud: readonly string[];
	readonly scope: readonly string[];
}

/** What Cedar answers: how many events may go out, counted from the front, or whether the request may go on. */
export function createCedar({ coverage = {}, clock_skew = 30 }: PolicyData) {
	const parsed = preparsePolicySet(ID, { staticPolicies: POLICIES });
	if (parsed.type === "failure") throw new Error(JSON.stringify(parsed.errors));
	const resources = [...new Set(Object.values(coverage).flat())];
	// A wildcard has no place in a set of Cedar's: what it stands for here is written out.
	const below = (entry: string) => KNOWN.filter((name) => name.startsWith(entry.slice(0, -1)));
	const covers = (aud: readonly string[]) => [
		...aud,
		...aud.flatMap((name) =>
			(coverage[name] ?? []).flatMap((entry) => (entry.endsWith("/*") ? below(entry) : [entry])),
		),
	];
	if (resources.length === 0) throw new Error("no coverage to compare");

	function isAuthorized(facts: Facts, need: Need): boolean {
		const { presented, session, now } = facts;
		if (presented === undefined || session === undefined) return false;
		const { iss = "", sub = "", client_id = "", aud, scope } = presented;
		const { binding } = session;
		const answer = statefulIsAuthorized({
			preparsedPolicySetId: ID,
			principal: { type: "Token", id: "presented" },
			action: { type: "Action", id: facts.moment },
			resource: { type: "Event", id: "pending" },
			context: {
				now: Math.floor(now),
				exp: Math.floor(presented.exp) + clock_skew,
				binding: {
					iss: binding.iss ?? "",
					sub: binding.sub ?? "",
					client_id: binding.client_id ?? "",
					covers: covers(binding.aud ?? []),
					scope: [...(binding.scope ?? [])],
				},
			},
			entities: [
				{
					uid: { type: "Token", id: "presented" },
					attrs: { iss, sub, client_id, aud: [...aud], covers: covers(aud), scope: [...scope] },
					parents: [],
				},
				{
					uid: { type: "Event", id: "pending" },
					attrs: { aud: [...need.aud], scope: [...need.scope] },
					parents: [],
				},
			],
		});
		if (answer.type === "failure") throw new Error(JSON.stringify(answer.errors));
		return answer.response.decision === "allow";
	}

	return {
		session: (facts: Facts): boolean => isAuthorized(facts, { aud: [], scope: [] }),
		/** `atomic`: all of them, and what still runs, or none. */
		resume(facts: Facts, events: readonly Need[]): number {
			const running = facts.open ?? [];
			return [...events, ...running].every((need) => isAuthorized(facts, need)) ? events.length : 0;
		},
	};
}

const KNOWN = ["https://mcp.example.com/tools/search", "https://mcp.example.com/tools/fetch"];
