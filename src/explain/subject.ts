import type { Facts, Label, RequestId } from "../generated/types.ts";
import type { Run, Subject } from "./explanation.ts";
import type { Oracle, Rights } from "./oracle.ts";
import { quote } from "./visible.ts";

/** Asks the policy what something needs, and what the presented token lacks of it. */
export function subjectOf(
	label: Label & { readonly request_id?: RequestId },
	rights: Rights,
	held: boolean,
	oracle: Oracle,
): Subject {
	const need = oracle.needOf(label);
	const missing = oracle.lacks(label, rights);
	const { tool, rpc, request_id } = label;
	return {
		...(tool !== undefined && { tool }),
		...(rpc !== undefined && { rpc }),
		...(request_id !== undefined && { request_id }),
		...(need !== undefined && { need }),
		...(missing !== undefined && { missing }),
		held,
	};
}

/** What the token at hand may do; without one, nothing. */
export function rightsOf({ presented }: Facts): Rights {
	return presented ?? { aud: [], scope: [] };
}

/** `fetch`, `resources/read`, or the session itself. */
export function purposeOf({ tool, rpc }: { readonly tool?: string; readonly rpc?: string }): string {
	return quote(tool ?? rpc ?? "session", 80);
}

/** A pending event, a running call or a call, by name. */
export function nameOfSubject(subject: Subject | Run): string {
	const purpose = purposeOf(subject);
	if ("first" in subject) return `event ${quote(subject.first, 80)} (${purpose})`;
	const { request_id } = subject;
	return request_id === undefined ? purpose : `${purpose}, request ${quote(request_id, 80)},`;
}
