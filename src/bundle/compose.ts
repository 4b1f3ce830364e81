import { ResumeGuardError } from "../errors.ts";
import { MOMENTS } from "../policy.ts";
import { SIGNATURES } from "./digest.ts";
import { pack } from "./pack.ts";
import { type SigningKey, sign } from "./sign.ts";

/** What goes into a bundle. */
export interface Parts {
	/** Policy data, as it is under `mcp`. */
	readonly data: unknown;
	readonly wasm: Uint8Array;
	/** The Rego that the Wasm is made of, for who reads it, and for OPA. */
	readonly rules: readonly { readonly path: string; readonly text: string }[];
	/** Decision tables by their names: its self-test. */
	readonly tests: Readonly<Record<string, unknown>>;
	readonly revision: string;
	readonly sequence?: number | undefined;
	readonly signing?: SigningKey | undefined;
}

/**
 * Makes a bundle as OPA does. The same parts make the same bytes, except where a signature is random by nature (ES, PS).
 *
 * @throws TypeError for a signing key that does not fit
 * @throws {ResumeGuardError} `policy_invalid`: Rego without a package
 */
export async function compose(parts: Parts): Promise<Uint8Array> {
	const files = new Map<string, Uint8Array>();
	const add = (path: string, text: string) => files.set(path, new TextEncoder().encode(text));
	add("data.json", JSON.stringify({ mcp: parts.data }));
	for (const { path, text } of parts.rules) add(path, text);
	files.set("policy.wasm", parts.wasm);
	add(".manifest", JSON.stringify(manifestOf(parts)));
	if (parts.signing !== undefined) add(SIGNATURES, await sign(files, parts.signing));
	return pack(files);
}

function manifestOf({ revision, rules, tests, sequence }: Parts): object {
	const own = {
		...(sequence !== undefined && { sequence }),
		...(Object.keys(tests).length > 0 && { tests }),
	};
	return {
		revision,
		roots: rootsOf(rules.map(packageOf)),
		wasm: MOMENTS.map((moment) => ({ entrypoint: `mcp/${moment}/decision`, module: "/policy.wasm" })),
		rego_version: 1,
		...(Object.keys(own).length > 0 && { metadata: { mcp_resume_guard: own } }),
	};
}

/** `mcp`, and what else there is Rego of, such as `system/log`; none of them within another. */
function rootsOf(packages: readonly string[]): string[] {
	const paths = ["mcp", ...packages].sort();
	return paths.filter(
		(path, index) => !paths.some((above, at) => at < index && `${path}/`.startsWith(`${above}/`)),
	);
}

function packageOf({ path, text }: Parts["rules"][number]): string {
	const name = /^package[ \t]+([\w.]+)/m.exec(text)?.[1];
	if (name === undefined) throw new ResumeGuardError("policy_invalid", `${path} has no package`);
	return name.replaceAll(".", "/");
}
