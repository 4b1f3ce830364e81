import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ResumeGuardError } from "../errors.ts";

/** An OPA that was found. */
export interface Opa {
	/** Its path, or its name on PATH. */
	readonly path: string;
	readonly version: string;
}

/** How OPA ended, and what it said. */
export interface OpaResult {
	readonly exitCode: number;
	readonly stdout: string;
	readonly stderr: string;
}

/** What policies may use: the builtins that the Wasm brings along. */
export const CAPABILITIES = fileURLToPath(new URL("../../tools/capabilities.json", import.meta.url));
/** The schema that the policies name in their METADATA. */
export const FACTS_SCHEMA = fileURLToPath(new URL("../../schemas/facts.json", import.meta.url));

/** Where there is no OPA, what to do about it. */
export const GET_OPA = "put opa (1.x) on PATH, or its path into $OPA: https://www.openpolicyagent.org/docs";

/**
 * OPA 1.x: `$OPA`, or else `opa` on PATH; `undefined` if there is none.
 *
 * @throws {ResumeGuardError} `opa_missing`: `$OPA` is set, and is no OPA 1.x
 */
export async function findOpa(): Promise<Opa | undefined> {
	const named = process.env.OPA;
	const path = named || "opa";
	const version = await versionOf(path);
	if (version?.startsWith("1.")) return { path, version };
	if (named) throw new ResumeGuardError("opa_missing", `$OPA is ${named}, which is not OPA 1.x`);
	return undefined;
}

/** @throws {ResumeGuardError} `opa_missing`: it cannot be run */
export function runOpa({ path }: Opa, args: readonly string[], cwd: string): Promise<OpaResult> {
	return new Promise((resolve, reject) => {
		execFile(path, args, { cwd, maxBuffer: 1 << 28 }, (error, stdout, stderr) => {
			const exitCode = error === null ? 0 : error.code;
			if (typeof exitCode === "number") resolve({ exitCode, stdout, stderr });
			else {
				reject(new ResumeGuardError("opa_missing", `${path} cannot be run`, { cause: error }));
			}
		});
	});
}

async function versionOf(path: string): Promise<string | undefined> {
	try {
		const { stdout } = await runOpa({ path, version: "" }, ["version"], process.cwd());
		return /^Version: (\d+\.\d+\.\d+)/m.exec(stdout)?.[1];
	} catch {
		return undefined;
	}
}
