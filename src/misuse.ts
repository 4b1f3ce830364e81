import type { z } from "zod";

/**
 * Holds options to what they may be; an unknown name is misuse, since a misspelt option is one that is not there.
 *
 * @throws {TypeError} which names the option
 */
export function assertOptions(schema: z.ZodType, options: unknown): void {
	const { success, error } = schema.safeParse(options);
	if (success) return;
	const [issue] = error.issues;
	const path = issue?.path.map(String).join(".") ?? "";
	if (issue?.code === "unrecognized_keys") {
		throw new TypeError(`there is no option \`${[...(path ? [path] : []), issue.keys[0]].join(".")}\``);
	}
	throw new TypeError(`\`${path}\`: ${issue?.message ?? "wrong"}`);
}
