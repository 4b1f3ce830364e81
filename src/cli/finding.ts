/** What `check` found. */
export interface Finding {
	readonly severity: "error" | "warning";
	/** Below the policy folder. */
	readonly file: string;
	/** JSON Pointer (RFC 6901) to the place in a JSON file; `""` is all of it. */
	readonly pointer?: string;
	/** Of a Rego file, from 1. */
	readonly line?: number;
	/** The rule's name. */
	readonly rule: string;
	/** One sentence. */
	readonly message: string;
}

/** A finding in a file that is known. */
export type Found = Omit<Finding, "file">;

/** A JSON Pointer (RFC 6901). */
export function pointer(...path: readonly (string | number)[]): string {
	return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
