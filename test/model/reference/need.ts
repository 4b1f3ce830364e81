import type { Label } from "../../../src/generated/types.ts";
import type { Data } from "./coverage.ts";
import type { Need } from "./question.ts";

export const NOTHING: Need = { aud: [], scope: [] };

/** What data maps a tool or another method to now; `undefined`: it maps neither it nor the rest. */
export function mappedNow(data: Data, { tool, rpc }: Partial<Label>): Need | undefined {
	if (tool !== undefined) return entry(data.tools, tool) ?? entry(data.tools, "*");
	if (rpc === undefined) return data.session_need;
	return entry(data.methods, rpc) ?? (rpc.startsWith("tasks/") ? undefined : entry(data.methods, "*"));
}

function entry(map: Readonly<Record<string, Need>>, name: string): Need | undefined {
	return Object.hasOwn(map, name) ? map[name] : undefined;
}

/**
 * What a label needs: what was stored, and what is mapped now; what is no longer mapped keeps what was stored. An
 * empty label needs what session-level messages need.
 */
export function needOf(data: Data, label: Label): Need {
	const isEmpty = label.aud.length === 0 && label.scope.length === 0;
	return together([label, mappedNow(data, label) ?? NOTHING, isEmpty ? data.session_need : NOTHING]);
}

export function together(needs: readonly Need[]): Need {
	return {
		aud: [...new Set(needs.flatMap(({ aud }) => aud))].sort(),
		scope: [...new Set(needs.flatMap(({ scope }) => scope))].sort(),
	};
}

export function isNothing({ aud, scope }: Need): boolean {
	return aud.length === 0 && scope.length === 0;
}
