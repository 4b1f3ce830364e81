import { promises as fs } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { activate } from "../bundle/activate.ts";
import { compose } from "../bundle/compose.ts";
import { createFloor } from "../bundle/floor.ts";
import { ResumeGuardError } from "../errors.ts";
import { jsonLine } from "../explain/index.ts";
import { createCompiler } from "../policy.ts";
import { revisionOf } from "../rules.ts";
import { visible } from "../testing/text.ts";
import type { Shell } from "./command.ts";
import {
	compilePolicyFolder,
	effectiveRules,
	parse,
	readPolicyData,
	readPolicyFolder,
	readTablesOf,
} from "./policy-folder.ts";
import { write } from "./stdio.ts";
import { readKeyFile } from "./verification.ts";

export interface BuildOptions {
	/** Where the bundle goes. */
	readonly output: string;
	/** Path of the key to sign with. */
	readonly sign?: string | undefined;
	readonly signingAlg?: string | undefined;
	readonly keyId?: string | undefined;
	readonly scope?: string | undefined;
	readonly revision?: string | undefined;
	readonly sequence?: number | undefined;
	/** Whether the decision tables go into it. */
	readonly tests?: boolean | undefined;
}

const help = `
The bundle has the policy of DIR as Wasm, its data, its manifest and, as its
self-test, the tables in DIR/tests: a guard that is given it runs them before it
takes it. OPA is needed only where DIR has Rego of its own. The same folder makes
the same bytes; an ES or PS signature is another each time. The file is put in
its place whole, so a host may be watching it.

--sign takes a private key as PEM (RSA, EC or Ed25519), or with an HS algorithm
a file whose whole content is the secret.

Exit code: 0 if it is built; 1 if it fails its own tables, and so is not; 2 if
DIR or the options are not good, or OPA is needed and missing.
`;

export function registerBuild(program: Command, { stdio, exit }: Shell): void {
	program
		.command("build")
		.description("build a policy folder into an OPA bundle, signed or not")
		.argument("<dir>", "the policy folder")
		.option("-o, --output <file>", "the bundle", "bundle.tar.gz")
		.option("--sign <file>", "sign it with this private key")
		.option("--signing-alg <alg>", "the algorithm (default: the usual one for the key)")
		.option("--key-id <id>", "the name that verifiers know the key by", "default")
		.option("--scope <scope>", "the scope of the signature")
		.option("--revision <text>", "its revision (default: a digest of policy and data)")
		.option("--sequence <n>", "its sequence, for hosts that refuse older ones", readSequence)
		.option("--no-tests", "leave the decision tables out")
		.option("--json", "say what was built as one JSON object")
		.addHelpText("after", help)
		.action(async (dir: string, { json, ...options }: BuildOptions & { json?: true }) => {
			const report = await build(dir, options).catch((error: unknown) => {
				if (!(error instanceof ResumeGuardError) || error.code !== "bundle_tests_failed") throw error;
				return { error: { code: error.code, message: error.message } };
			});
			const ok = !("error" in report);
			if (json) await write(stdio.stdout, `${jsonLine({ ok, ...report })}\n`);
			else if (ok) await write(stdio.stdout, textOf(report));
			else stdio.stderr.write(`mcp-resume-guard: ${visible(report.error.message)}\n`);
			exit(ok ? 0 : 1);
		});
}

function readSequence(text: string): number {
	const sequence = Number(text);
	if (!/^\d+$/.test(text) || !Number.isSafeInteger(sequence)) {
		throw new InvalidArgumentError("a whole number from 0");
	}
	return sequence;
}

export interface BuildReport {
	readonly bundle: string;
	/** Bytes. */
	readonly size: number;
	readonly revision: string;
	readonly sequence?: number;
	/** The names of the tables in it. */
	readonly tests: readonly string[];
	readonly signed: boolean;
}

/**
 * Builds a policy folder into a bundle, and takes it once as a guard would.
 *
 * @throws {ResumeGuardError} `bundle_tests_failed`, `data_invalid`, `table_invalid`, `policy_invalid`, `opa_missing`,
 *   `file_unreadable`, `file_unwritable`
 * @throws TypeError for a signing key that does not fit
 */
export async function build(dir: string, options: BuildOptions): Promise<BuildReport> {
	const { output, sequence } = options;
	if (options.sign === undefined && (options.signingAlg ?? options.scope) !== undefined) {
		throw new TypeError("--signing-alg and --scope need --sign");
	}
	const folder = await readPolicyFolder(dir);
	const complete = await readPolicyData(folder);
	const parsed = parse(folder.data);
	const tables = options.tests === false ? [] : readTablesOf(folder);
	const wasm = await compilePolicyFolder(folder);
	const revision = options.revision ?? (await revisionOf(complete, wasm));
	const archive = await compose({
		data: "value" in parsed ? parsed.value : complete,
		wasm,
		rules: await effectiveRules(folder),
		tests: Object.fromEntries(tables.map(({ name, document }) => [name, document])),
		revision,
		sequence,
		...(options.sign !== undefined && {
			signing: {
				key: await readKeyFile(options.sign),
				algorithm: options.signingAlg,
				keyid: options.keyId,
				scope: options.scope,
			},
		}),
	});
	await activate(archive, { verification: "skip" }, createFloor(undefined), createCompiler());
	await put(output, archive);
	return {
		bundle: output,
		size: archive.length,
		revision,
		...(sequence !== undefined && { sequence }),
		tests: tables.map(({ name }) => name),
		signed: options.sign !== undefined,
	};
}

async function put(path: string, content: Uint8Array): Promise<void> {
	const temporary = `${path}.${crypto.randomUUID()}.tmp`;
	try {
		await fs.writeFile(temporary, content, { flag: "wx" });
		await fs.rename(temporary, path);
	} catch (cause) {
		await fs.rm(temporary, { force: true });
		throw new ResumeGuardError("file_unwritable", `${path} cannot be written`, { cause });
	}
}

function textOf({ bundle, size, revision, sequence, tests, signed }: BuildReport): string {
	const parts = [
		`${size} bytes`,
		`revision ${revision}`,
		...(sequence === undefined ? [] : [`sequence ${sequence}`]),
		signed ? "signed" : "not signed",
		`${tests.length} decision tables in it`,
	];
	return `${visible(`${bundle}: ${parts.join(", ")}`)}\n`;
}
