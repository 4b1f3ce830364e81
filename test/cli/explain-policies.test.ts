import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { resolve as absolute, join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { buildWasm } from "../../scripts/build-wasm.ts";
import { findOpa } from "../../scripts/opa.ts";
import { type Explanation, explain } from "../../src/explain/index.ts";
import { createResumeGuard } from "../../src/index.ts";
import { inTemporaryFolder } from "../temporary.ts";
import { moments, payload, resume, search, server } from "./questions.ts";
import { runOn, toLines } from "./support.ts";

// Building takes its time where many run.
vi.setConfig({ testTimeout: 30_000 });

const narrow = resume(payload(search));

test("a bundle explains and replays, and has its own data", async () => {
	await inTemporaryFolder([], async (folder) => {
		const [rules, bundle] = [join(folder, "rules"), join(folder, "bundle.tar.gz")];
		expect(await runOn([], "init", rules)).toMatchObject({ exitCode: 0 });
		expect(await runOn([], "build", rules, "-o", bundle)).toMatchObject({ exitCode: 0 });

		const { stdout, exitCode } = await runOn(
			[JSON.stringify(narrow)],
			"explain",
			"--json",
			"--policy",
			bundle,
		);
		expect(exitCode).toBe(0);
		const { revision, decision }: Explanation = JSON.parse(stdout);
		const record = { path: "mcp/resume/decision", input: narrow, result: decision, revision };
		const replayed = await runOn([toLines([record])], "replay", "-", "--json", "--policy", bundle);
		expect(replayed.exitCode).toBe(0);
		expect(JSON.parse(replayed.stdout)).toMatchObject({ revision, replayed: 1, unchanged: 1, notes: [] });
	});
});

const noOpa = await findOpa({ exact: true }).then(
	() => false,
	() => true,
);

describe.skipIf(noOpa)("needs OPA: policies that were edited", () => {
	/** A guard by the packaged policies with these edits. */
	async function edited(path: string, edit: (rego: string) => string) {
		return inTemporaryFolder([], async (folder) => {
			cpSync("policies", join(folder, "policies"), { recursive: true });
			const file = join(folder, "policies", path);
			const before = readFileSync(file, "utf8");
			writeFileSync(file, edit(before));
			expect(readFileSync(file, "utf8")).not.toBe(before);
			const policy = await buildWasm([
				"--capabilities",
				absolute("tools/capabilities.json"),
				"--ignore",
				"*_test.rego",
				"--ignore",
				"data.json",
				join(folder, "policies"),
			]);
			return createResumeGuard({ policy, data: "policies/mcp/data.json", onFault: () => {} });
		});
	}

	test("a rule of the operator's own is row 5, and the rows before it are told", async () => {
		const guard = await edited(
			"mcp/custom/custom.rego",
			(rego) =>
				`${rego}\nrefusal contains {"code": "custom:no_search", "outcome": "refuse"} if input.tool == "search"\n`,
		);
		const { rows, decision, disagreements } = explain(guard, "call", moments.call as never);
		expect(decision.code).toBe("custom:no_search");
		expect(disagreements).toEqual([]);
		expect(rows.find(({ state }) => state === "fired")).toMatchObject({
			row: "5",
			facts: "the rule custom:no_search refused",
		});
		// What it does not refuse is told as ever.
		expect(explain(guard, "resume", narrow as never).disagreements).toEqual([]);
	});

	test("a policy that looks at the audience of the pending events no more is found out", async () => {
		const guard = await edited("mcp/resume/resume.rego", (rego) =>
			rego.replace("pending_met := [need.is_met(needed) |", "pending_met := [true |"),
		);
		const { decision, disagreements } = explain(guard, "resume", narrow as never);
		expect(decision).toMatchObject({ outcome: "proceed", deliver: 7 });
		expect(disagreements.join()).toMatch(/row 9 .* should have decided/);
	});

	test("a profile that lets the audience go sideways is found out", async () => {
		const guard = await edited("mcp/lib/binding/binding.rego", (rego) =>
			rego.replace("\tcount(recorded_own) > 0\n\tnarrower_or_wider\n", "\tcount(recorded_own) > 0\n"),
		);
		const aside = resume(payload("https://other.example"), []);
		expect(explain(guard, "resume", aside as never).disagreements.join()).toMatch(
			/profile covering is broken by aud/,
		);
		expect(explain(guard, "resume", resume(payload(server)) as never).disagreements).toEqual([]);
	});

	test("an order of rows that was changed is found out", async () => {
		const guard = await edited("mcp/lib/continuity/continuity.rego", (rego) =>
			rego
				.replace("refusal := token_missing if token_missing", "refusal := principal_drift if principal_drift")
				.replace("else := principal_drift if principal_drift", "else := token_missing if token_missing"),
		);
		const expired = resume({ ...payload(server), sub: "mallory", exp: 1 });
		const { decision, disagreements } = explain(guard, "resume", expired as never);
		expect(decision.code).toBe("principal_drift");
		expect(disagreements.join()).toMatch(/row 1 .* should have decided/);
	});
});
