import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";

/** An import that a file of src/ may not have, or may. */
type Case = readonly [file: string, specifier: string];

interface Biome {
	readonly linter: object;
	readonly overrides: readonly { readonly includes: readonly string[] }[];
}

interface Diagnostic {
	readonly location: { readonly path: string };
}

const forbidden: readonly Case[] = [
	["src/errors.ts", "./facts.ts"],
	["src/facts.ts", "./guard.ts"],
	["src/facts.ts", "./index.ts"],
	["src/decision.ts", "./sessions/store.ts"],
	["src/decision.ts", "@open-policy-agent/opa-wasm"],
	["src/policy.ts", "./guard.ts"],
	["src/guard.ts", "./wire/headers.ts"],
	["src/guard.ts", "./sessions/store.ts"],
	["src/guard.ts", "./hosts/fastify.ts"],
	["src/guard.ts", "@open-policy-agent/opa-wasm"],
	["src/sessions/memory.ts", "../hosts/fastify.ts"],
	["src/sessions/memory.ts", "../policy.ts"],
	["src/sessions/memory.ts", "../guard.ts"],
	["src/sessions/memory.ts", "../events/log.ts"],
	["src/events/memory.ts", "../guard.ts"],
	["src/events/memory.ts", "../resume/locate.ts"],
	["src/events/memory.ts", "../wire/frames.ts"],
	["src/tokens/verifier.ts", "../guard.ts"],
	["src/tokens/verifier.ts", "../hosts/fastify.ts"],
	["src/wire/frames.ts", "../resume/tail.ts"],
	["src/wire/frames.ts", "../events/log.ts"],
	["src/resume/tail.ts", "../hosts/fastify.ts"],
	["src/resume/tail.ts", "../policy.ts"],
	["src/resume/tail.ts", "fastify"],
	["src/hosts/sdk.ts", "../policy.ts"],
	["src/hosts/sdk.ts", "../index.ts"],
	["src/hosts/sdk.ts", "../cli/main.ts"],
	["src/hosts/sdk.ts", "fastify"],
	["src/hosts/fastify.ts", "commander"],
	["src/hosts/fastify/routes.ts", "../../policy.ts"],
	["src/cli/main.ts", "../hosts/fastify.ts"],
	["src/cli/main.ts", "fastify"],
	["src/source.ts", "./guard.ts"],
	["src/bundle/load.ts", "../guard.ts"],
	["src/bundle/load.ts", "../cli/main.ts"],
	["src/log/log.ts", "../hosts/fastify.ts"],
	["src/log/log.ts", "@opentelemetry/api"],
	["src/telemetry/telemetry.ts", "../hosts/fastify.ts"],
	["src/testing/run.ts", "../hosts/fastify.ts"],
	["src/explain/explain.ts", "../hosts/fastify.ts"],
	["src/explain/explain.ts", "../cli/main.ts"],
	["src/client/recover.ts", "../guard.ts"],
	["src/client/recover.ts", "../wire/frames.ts"],
	["src/index.ts", "./hosts/fastify.ts"],
	["src/index.ts", "fastify"],
	["src/index.ts", "commander"],
	["src/index.ts", "@open-policy-agent/opa-wasm"],
	["src/index.ts", "../test/helpers.ts"],
	["src/index.ts", "../scripts/opa.ts"],
	["src/hosts/fastify.ts", "../../examples/fastify/main.ts"],
	["src/hosts/fastify.ts", "../../bench/main.ts"],
	["src/index.ts", "mcp-resume-guard/fastify"],
];

const allowed: readonly Case[] = [
	["src/facts.ts", "./errors.ts"],
	["src/policy.ts", "@open-policy-agent/opa-wasm"],
	["src/guard.ts", "./policy.ts"],
	["src/guard.ts", "./generated/types.ts"],
	["src/sessions/memory.ts", "../generated/types.ts"],
	["src/sessions/memory.ts", "lru-cache"],
	["src/events/memory.ts", "../sessions/store.ts"],
	["src/resume/tail.ts", "../wire/frames.ts"],
	["src/resume/tail.ts", "../guard.ts"],
	["src/hosts/fastify.ts", "../resume/tail.ts"],
	["src/hosts/fastify.ts", "fastify"],
	["src/hosts/fastify/routes.ts", "../../resume/tail.ts"],
	["src/cli/main.ts", "commander"],
	["src/cli/main.ts", "../bundle/sign.ts"],
	["src/cli/main.ts", "../explain/index.ts"],
	["src/cli/main.ts", "../log/event.ts"],
	["src/cli/main.ts", "../testing/index.ts"],
	["src/source.ts", "./bundle/load.ts"],
	["src/bundle/load.ts", "jose"],
	["src/log/log.ts", "../guard.ts"],
	["src/telemetry/telemetry.ts", "@opentelemetry/api"],
	["src/testing/run.ts", "../guard.ts"],
	["src/explain/explain.ts", "../guard.ts"],
	["src/client/recover.ts", "../generated/types.ts"],
	["src/hosts/fastify/routes.ts", "../../guard.ts"],
	["src/hosts/fastify/routes.ts", "../../tokens/index.ts"],
	["src/hosts/fastify/routes.ts", "./options.ts"],
	["src/index.ts", "./guard.ts"],
	["src/index.ts", "./sessions/memory.ts"],
];

// One run for all: each case is a file in a folder of its own.
const refused = lint([...forbidden, ...allowed]);

test.each(forbidden)("%s may not import %s", (...imports) => {
	expect(refused).toContainEqual(imports);
});

test.each(allowed)("%s may import %s", (...imports) => {
	expect(refused).not.toContainEqual(imports);
});

/** The cases that Biome, with the rules of this repository, refuses. */
function lint(cases: readonly Case[]): Case[] {
	const root = mkdtempSync(join(tmpdir(), "architecture-"));
	try {
		const { linter, overrides } = JSON.parse(readFileSync("biome.json", "utf8")) as Biome;
		const nested = overrides.map(({ includes, ...rest }) => ({
			includes: includes.map((pattern) => `*/${pattern}`),
			...rest,
		}));
		writeFileSync(join(root, "biome.json"), JSON.stringify({ linter, overrides: nested }));
		for (const [index, [file, specifier]] of cases.entries()) {
			const path = join(root, String(index), file);
			mkdirSync(dirname(path), { recursive: true });
			writeFileSync(path, `export * from ${JSON.stringify(specifier)};\n`);
		}
		const args = [
			"lint",
			"--only=style/noRestrictedImports",
			"--reporter=json",
			"--max-diagnostics=none",
			".",
		];
		const { stdout } = spawnSync(resolve("node_modules/.bin/biome"), args, { cwd: root, encoding: "utf8" });
		const { diagnostics } = JSON.parse(stdout) as { diagnostics: Diagnostic[] };
		const indices = new Set(diagnostics.map(({ location }) => Number(location.path.split("/", 1)[0])));
		return cases.filter((_, index) => indices.has(index));
	} finally {
		rmSync(root, { recursive: true });
	}
}
