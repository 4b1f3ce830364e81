import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

// `tsx scripts/smoke.ts <tarball>`: installs the package into an empty folder, without peers, and uses it there.

interface Manifest {
	readonly name: string;
	readonly exports: Record<string, string | { readonly default: string }>;
	readonly peerDependencies?: Record<string, string>;
}

const [tarball] = process.argv.slice(2);
if (tarball === undefined) throw new Error("usage: smoke <tarball>");
const { name, exports, peerDependencies = {} } = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
const modules = Object.entries(exports)
	.filter(([, target]) => typeof target === "object")
	.map(([subpath]) => name + subpath.slice(1));

const facts = {
	moment: "session",
	request: { method: "POST", transport: "streamable-http", session: "none" },
	rpc: "initialize",
	presented: {
		iss: "https://as.example.com",
		sub: "alice",
		client_id: "app",
		aud: "https://mcp.example.com",
		exp: 4102444800,
	},
};

const folder = mkdtempSync(join(tmpdir(), "smoke-"));
try {
	writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
	run("npm", ["install", "--omit=peer", "--no-audit", "--no-fund", resolve(tarball)]);

	for (const module of modules) {
		node("--input-type=module", `await import("${module}")`, module, "import");
		node("--input-type=commonjs", `require("${module}")`, module, "require");
	}

	const decide = `
		import { createRequire } from "node:module";
		import { createResumeGuard } from "${name}";
		const data = createRequire(import.meta.url).resolve("${name}/policies/mcp/data.json");
		const guard = await createResumeGuard({ data });
		const { moment, ...question } = ${JSON.stringify(facts)};
		console.log(guard.session(question).outcome);
	`;
	expect("a decision", run(process.execPath, ["--input-type=module", "--eval", decide]).trim(), "proceed");

	const line = run("npx", ["--no-install", name, "decide"], `${JSON.stringify(facts)}\n`);
	expect("the command line", (JSON.parse(line) as { outcome: string }).outcome, "proceed");

	for (const command of [
		["init", "policy"],
		["test", "policy"],
		["build", "policy", "-o", "bundle.tar.gz"],
		["inspect", "bundle.tar.gz"],
	]) {
		run("npx", ["--no-install", name, ...command]);
		console.log(command.join(" "));
	}
} finally {
	rmSync(folder, { recursive: true });
}

/** A module that only a missing peer keeps from loading is named, and no failure. */
function node(type: string, code: string, module: string, how: string): void {
	try {
		run(process.execPath, [type, "--eval", code]);
		console.log(`${how} ${module}`);
	} catch (error) {
		const { stderr } = error as { stderr: string };
		const peer = Object.keys(peerDependencies).find((peer) =>
			stderr.includes(`Cannot find package '${peer}'`),
		);
		if (peer === undefined) throw new Error(`${how} ${module}: ${stderr}`);
		console.log(`${how} ${module}: skipped, needs ${peer}`);
	}
}

function run(command: string, args: readonly string[], input = ""): string {
	return execFileSync(command, args, { cwd: folder, input, encoding: "utf8", stdio: "pipe" });
}

function expect(what: string, actual: string, wanted: string): void {
	if (actual !== wanted) throw new Error(`${what}: ${actual} instead of ${wanted}`);
	console.log(`${what}: ${actual}`);
}
