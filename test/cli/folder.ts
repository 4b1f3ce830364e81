import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { findOpa } from "../../scripts/opa.ts";
import { runOn } from "./support.ts";

/** A folder that is gone after the test. */
export function temporaryFolder(): string {
	const folder = mkdtempSync(join(tmpdir(), "policy-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	return folder;
}

/** A policy folder as `init` makes it, with some files more or in their place; `null`: without this one. */
export async function policyFolder(files: Readonly<Record<string, unknown>> = {}): Promise<string> {
	const folder = join(temporaryFolder(), "policy");
	await runOn([], "init", folder);
	for (const [path, content] of Object.entries(files)) {
		const file = join(folder, path);
		if (content === null) {
			rmSync(file, { recursive: true });
			continue;
		}
		mkdirSync(dirname(file), { recursive: true });
		writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
	}
	return folder;
}

/** Policy data as it ships. */
export function shippedData(): Record<string, unknown> {
	return JSON.parse(readFileSync("policies/mcp/data.json", "utf8"));
}

/** The command line finds no OPA, whatever this machine has. */
export function withoutOpa(): void {
	vi.stubEnv("OPA", "");
	vi.stubEnv("PATH", "/nowhere");
	onTestFinished(() => {
		vi.unstubAllEnvs();
	});
}

/** The command line finds the OPA that the scripts find. */
export async function withOpa(options?: { exact: boolean }): Promise<void> {
	vi.stubEnv("OPA", await findOpa(options));
	onTestFinished(() => {
		vi.unstubAllEnvs();
	});
}

const isMissing = (options?: { exact: boolean }) =>
	findOpa(options).then(
		() => false,
		() => true,
	);

export const noOpa = await isMissing();
/** None of the version that makes the files that are committed. */
export const noPinnedOpa = await isMissing({ exact: true });
