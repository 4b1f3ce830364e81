import type { Command } from "commander";
import { LIMITS, tooLarge } from "../bundle/archive.ts";
import { type Description, describeBundle } from "../bundle/describe.ts";
import { readBounded } from "../bundle/files.ts";
import { readOptions } from "../bundle/options.ts";
import { jsonLine } from "../explain/index.ts";
import { visible } from "../testing/text.ts";
import type { Shell } from "./command.ts";
import { write } from "./stdio.ts";
import { type Style, styleOf } from "./style.ts";
import {
	addVerificationOptions,
	readVerificationArguments,
	type VerificationArguments,
} from "./verification.ts";

const help = `
Without --verification-key the signature is shown, and not verified.

Exit code: 0 if a guard would take the bundle (its own tables pass and, with a
key, its signature is good); 1 if it would refuse it; 2 if it cannot be read.
`;

export function registerInspect(program: Command, { stdio, exit }: Shell): void {
	addVerificationOptions(
		program
			.command("inspect")
			.description("show what is in a bundle, and whether a guard would take it")
			.argument("<bundle>", "the bundle"),
	)
		.option("--json", "as one JSON object")
		.addHelpText("after", help)
		.action(async (bundle: string, { json, ...options }: VerificationArguments & { json?: true }) => {
			const description = await inspect(bundle, options);
			const ok = description.refused === undefined;
			const text = json
				? `${jsonLine({ ok, ...description })}\n`
				: textOf(description, styleOf(stdio.stdout));
			await write(stdio.stdout, text);
			exit(ok ? 0 : 1);
		});
}

/**
 * @throws {ResumeGuardError} `file_unreadable`, `bundle_too_large`, `bundle_invalid`, `bundle_signature_invalid`
 * @throws TypeError for a key that does not fit
 */
export async function inspect(path: string, options: VerificationArguments): Promise<Description> {
	const given = await readVerificationArguments(options);
	const { verification } = await readOptions({
		source: path,
		...(given !== undefined && { verification: given }),
	});
	const archive = await readBounded(path, "the bundle", LIMITS.packed, () =>
		tooLarge(`more than ${LIMITS.packed} bytes`),
	);
	return describeBundle(archive, verification === "skip" ? undefined : verification);
}

function textOf(description: Description, style: Style): string {
	const { refused, revision, roots, entrypoints, sequence, tests, signature, size, files } = description;
	const rows: [string, string][] = [
		["revision", revision ?? "none"],
		["sequence", sequence === undefined ? "none" : String(sequence)],
		["roots", roots.map((root) => root || "/").join(" ")],
		["entrypoints", entrypoints.join(" ") || "none"],
		["tables", tests.join(" ") || "none"],
		["signature", signature === undefined ? "none" : signatureText(signature)],
		["size", `${size.packed} bytes, ${size.unpacked} unpacked`],
		...files.map((file): [string, string] => ["file", `${file.path} ${file.size}`]),
	];
	const verdict =
		refused === undefined
			? style("green", "a guard would take it")
			: `${style("red", "a guard would refuse it")}: ${visible(`${refused.code}: ${refused.message}`)}`;
	return `${rows.map(([name, value]) => `${style("dim", name.padEnd(12))}${visible(value)}\n`).join("")}${verdict}\n`;
}

function signatureText({
	keyid,
	algorithm,
	scope,
	files,
	verified,
}: NonNullable<Description["signature"]>): string {
	return [
		verified ? "good" : "not verified",
		`key ${keyid ?? "not named"}`,
		algorithm ?? "no algorithm",
		...(scope === undefined ? [] : [`scope ${scope}`]),
		`${files} files`,
	].join(", ");
}
