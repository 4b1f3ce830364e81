import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pinnedOpa } from "../../scripts/opa.ts";

const [major = 0, minor = 0] = pinnedOpa.split(".").map(Number);
const newer = `${major}.${minor + 1}.0`;
const older = `${major}.${minor - 1}.9`;
const nextMajor = `${major + 1}.0.0`;

/** What a machine has: the version that a program answers with. `go`: the one that Go builds. */
interface Machine {
	readonly $OPA?: string;
	readonly opa?: string;
	readonly go?: string;
}

let folder: string;
beforeAll(() => {
	folder = mkdtempSync(join(tmpdir(), "opa-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each<[string, Machine, string]>([
	["$OPA, before all others", { $OPA: newer, opa: pinnedOpa, go: pinnedOpa }, "named"],
	["opa on PATH, of the pinned version", { opa: pinnedOpa, go: pinnedOpa }, "opa"],
	["opa on PATH, newer", { opa: newer, go: pinnedOpa }, "opa"],
	["the Go tool, if opa on PATH is older", { opa: older, go: pinnedOpa }, "built"],
	["the Go tool, if opa on PATH is of another major version", { opa: nextMajor, go: pinnedOpa }, "built"],
	["the Go tool, if there is nothing else", { go: pinnedOpa }, "built"],
])("finds %s", (_, machine, wanted) => {
	const { status, stdout, stderr } = runOn(machine);
	expect(stderr).toBe("");
	expect(stdout).toContain(`I am ${wanted}`);
	expect(status).toBe(0);
});

test.each<[string, Machine]>([
	["nothing", {}],
	["an older opa only", { opa: older }],
])("says what to install on a machine with %s", (_, machine) => {
	const { status, stderr } = runOn(machine);
	expect(stderr.trim().split("\n")).toEqual([
		expect.stringMatching(`^OPA ${pinnedOpa} or later is needed.*install Go`),
	]);
	expect(status).toBe(1);
});

test("refuses an $OPA that does not fit, rather than take another", () => {
	const { status, stderr } = runOn({ $OPA: older, opa: pinnedOpa });
	expect(stderr).toMatch(/^\$OPA is .*, which is not OPA/);
	expect(status).toBe(1);
});

test("tools/go.mod pins OPA as a Go tool", () => {
	expect(readFileSync("tools/go.mod", "utf8")).toMatch(/^tool github\.com\/open-policy-agent\/opa$/m);
});

/** `npm run opa -- version` where PATH has these programs and no others. */
function runOn(machine: Machine) {
	const bin = mkdtempSync(join(folder, "bin-"));
	const program = (name: string, text: string) => {
		const path = join(bin, name);
		writeFileSync(path, `#!/bin/sh\n${text}\n`);
		chmodSync(path, 0o755);
		return path;
	};
	const opa = (name: string, version: string) =>
		program(name, `echo "Version: ${version}"; echo "I am ${name}"`);

	const env: NodeJS.ProcessEnv = { PATH: bin };
	if (machine.$OPA !== undefined) env.OPA = opa("named", machine.$OPA);
	if (machine.opa !== undefined) opa("opa", machine.opa);
	if (machine.go !== undefined) program("go", `echo ${opa("built", machine.go)}`);
	const tsx = ["node_modules/tsx/dist/cli.mjs", "scripts/opa.ts", "version"];
	return spawnSync(process.execPath, tsx, { env, encoding: "utf8" });
}
