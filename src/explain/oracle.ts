import type { CompletePolicyData } from "../data.ts";
import type { Decisions } from "../decision.ts";
import type { Questions } from "../facts.ts";
import type { Label, Missing, Need } from "../generated/types.ts";
import type { Moments } from "../guard.ts";
import type { Moment } from "../policy.ts";
import { ownResources } from "../resources.ts";

/** A guard, as far as an explanation asks it. */
export interface Asked {
	/** Questions that nobody else hears of. */
	readonly probe: Moments;
	readonly data: CompletePolicyData;
	readonly revision: string;
}

/** What a token may do. */
export interface Rights {
	readonly aud: readonly string[];
	readonly scope: readonly string[];
}

/**
 * The policy itself, asked what an explanation needs to know: nothing here works out what a policy would say.
 */
export interface Oracle {
	readonly data: CompletePolicyData;
	/** Whether an audience is this server's own. */
	readonly isOwn: (audience: string) => boolean;
	/** How many questions it has been asked. */
	readonly questions: number;
	ask<M extends Moment>(moment: M, question: Questions[M]): Decisions[M];
	/** What these rights lack of what a label needs; `undefined` if the policy does not say. */
	lacks(label: Label, rights: Rights): Missing | undefined;
	/** All that a label needs now; `undefined` if the policy does not say. */
	needOf(label: Label): Need | undefined;
	/** Those of the resources that the audiences do not stand for; `undefined` if the policy does not say. */
	uncovered(resources: readonly string[], audiences: readonly string[]): readonly string[] | undefined;
}

// A time of its own: what is covered does not depend on when.
const NOW = 0;
const EXP = 3600;

export function createOracle({ probe, data }: Asked): Oracle {
	const isOwn = ownResources(data);
	let questions = 0;

	function ask<M extends Moment>(moment: M, question: Questions[M]): Decisions[M] {
		questions += 1;
		return probe[moment](question as never) as Decisions[M];
	}

	// An audience that covers nothing of what is asked about: nobody's resource, and no need.
	function nobody({ aud }: Rights): string {
		let name = "urn:mcp-resume-guard:nobody";
		while (isOwn(name) || aud.includes(name)) name += "-";
		return name;
	}

	// One event for a token without a session: the answer depends on coverage alone, and names all that is missing.
	function lacks(label: Label, { aud, scope }: Rights): Missing | undefined {
		const { tool, rpc } = label;
		const decision = ask("delivery", {
			now: NOW,
			request: { method: "POST", transport: "streamable-http", session: "none" },
			presented: {
				iss: "urn:mcp-resume-guard",
				sub: "nobody",
				aud: aud.length > 0 ? [...aud] : [nobody(label)],
				scope: [...scope],
				exp: EXP,
			},
			event: {
				...(tool !== undefined && { tool }),
				...(rpc !== undefined && { rpc }),
				aud: [...label.aud],
				scope: [...label.scope],
			},
		});
		if (decision.outcome === "proceed") return { aud: [], scope: [] };
		return "held" in decision ? decision.held?.missing : undefined;
	}

	return {
		data,
		isOwn,
		get questions() {
			return questions;
		},
		ask,
		lacks,
		needOf: (label) => lacks(label, { aud: [], scope: [] }),
		uncovered(resources, audiences) {
			if (resources.length === 0) return [];
			const missing = lacks({ aud: [...resources], scope: [] }, { aud: audiences, scope: [] });
			return missing?.aud.filter((resource) => resources.includes(resource));
		},
	};
}
