import { type Deciders, type DecisionCase, decidersByData, runCase } from "../../src/tables.ts";

/** Makes guards; what a case is decided by. */
export type CreateGuard = (data: DecisionCase["data"]) => ReturnType<Deciders>;

/**
 * The first case that is not decided as wanted, by its name; `undefined`: all are. Cases that have found something before
 * are asked first.
 */
export function createTableCheck(cases: readonly DecisionCase[]) {
	const order = [...cases];
	return async (create: CreateGuard): Promise<string | undefined> => {
		const deciders = decidersByData(create);
		for (const [index, one] of order.entries()) {
			const { ok } = await runCase(one, deciders);
			if (ok) continue;
			order.splice(index, 1);
			order.unshift(one);
			return one.name;
		}
		return undefined;
	};
}
