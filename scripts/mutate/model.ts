import { startAsked } from "./asked.ts";

/** Asks the model (test/model/judge.ts) whether a guard, or a policy, decides as it does. */
export interface Model {
	isSame(subject: { readonly policy: string } | { readonly guard: string }): Promise<boolean>;
	close(): void;
}

export function startModel(): Model {
	const judge = startAsked<object, { same: boolean }>("test/model/judge.ts");
	return {
		isSame: async (subject) => (await judge.ask(subject))?.same ?? false,
		close: judge.close,
	};
}
