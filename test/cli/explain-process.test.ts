import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { moments, payload, resume, search, server } from "./questions.ts";
import { dataFile, temporaryFile, toLines } from "./support.ts";

// The program itself, as a process of its own, which takes its time where many run.
vi.setConfig({ testTimeout: 30_000 });

const program = ["--import", "tsx", "src/cli/main.ts"];
const question = () => temporaryFile("question.json", JSON.stringify(resume(payload(search))));
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ESCAPE = /\x1b/;

// util-linux: a command with a terminal of its own.
const script = spawnSync("script", ["--version"], { encoding: "utf8" });
const hasTerminal = script.status === 0 && script.stdout.includes("util-linux");

describe.runIf(hasTerminal)("on a terminal (needs script of util-linux)", () => {
	const onTerminal = (argv: string[], env: Record<string, string>) => {
		const command = [process.execPath, ...program, ...argv].map((word) => `'${word}'`).join(" ");
		// What Node takes for the word of a terminal that has none (tty.getColorDepth): CI is one of them.
		const { NO_COLOR: _, FORCE_COLOR: __, CI: ___, ...others } = process.env;
		return spawnSync("script", ["-qec", command, "/dev/null"], {
			encoding: "utf8",
			env: { ...others, TERM: "xterm-256color", ...env },
		});
	};

	test("explain has colours", () => {
		const { stdout, status } = onTerminal(["explain", question()], {});
		expect(stdout).toMatch(ESCAPE);
		expect(stdout).toMatch(/REAUTHORIZE/);
		expect(status).toBe(0);
	});

	test.each([{ NO_COLOR: "1" }, { TERM: "dumb" }])("with %j it has none", (env) => {
		expect(onTerminal(["explain", question()], env).stdout).not.toMatch(ESCAPE);
	});

	test("replay has colours, and its exit code", async () => {
		const log = temporaryFile("log", toLines([refused()]));
		const { stdout, status } = onTerminal(["replay", log, "--data", dataFile({ replay: "prefix" })], {});
		expect(stdout).toMatch(ESCAPE);
		expect(status).toBe(1);
	});
});

test.each(["1", "0"])("in a pipe there are no colours, though FORCE_COLOR is %s", (force) => {
	const { stdout, status } = spawnSync(process.execPath, [...program, "explain", question()], {
		encoding: "utf8",
		env: { ...process.env, FORCE_COLOR: force },
	});
	expect(status).toBe(0);
	expect(stdout).toMatch(/^REAUTHORIZE/);
	expect(stdout).not.toMatch(ESCAPE);
});

test.each<[number, string, object]>([
	[0, "nothing widens", {}],
	[1, "more would be delivered", { replay: "prefix" }],
])("replay exits with %i where %s", (exitCode, _, data) => {
	const log = temporaryFile("log", toLines([refused()]));
	const argv = [...program, "replay", log, "--data", dataFile(data)];
	expect(spawnSync(process.execPath, argv, { encoding: "utf8" }).status).toBe(exitCode);
});

test("replay exits with 2 where a line cannot be read", () => {
	const log = temporaryFile("log", `${toLines([refused()])}x\n`);
	const argv = [...program, "replay", log, "--policy", "src/generated/policy.wasm"];
	expect(spawnSync(process.execPath, argv, { encoding: "utf8" }).status).toBe(2);
});

test("replay needs no more memory for a longer log", { timeout: 120_000 }, async () => {
	const child = spawn(process.execPath, [
		"--max-old-space-size=40",
		...program,
		"replay",
		"-",
		"--json",
		"--policy",
		"src/generated/policy.wasm",
	]);
	onTestFinished(() => {
		child.kill();
	});
	const answer = text(child.stdout);
	await pipeline(Readable.from(long()), child.stdin);
	expect(JSON.parse(await answer)).toMatchObject({
		replayed: 1_000,
		unchanged: 1_000,
		other: 99_000,
		exit: 0,
	});
	if (child.exitCode === null) await once(child, "exit");
	expect(child.exitCode).toBe(0);
});

/** Most of it is of other policies, which costs little to pass over; together far more than the heap may hold. */
function* long(): Generator<string> {
	const other = { path: "system/authz/allow", input: "x".repeat(800) };
	const hundred = toLines([decided(), ...Array.from({ length: 99 }, () => other)]);
	for (let made = 0; made < 100_000; made += 100) yield hundred;
}

function decided(): object {
	const result = {
		outcome: "proceed",
		code: "covered",
		drift: [],
		session: "keep",
		status: 200,
		label: { aud: [], scope: [] },
	};
	const input = { ...moments.session, presented: payload(server) };
	return { decision_id: "d", path: "mcp/session/decision", input, result };
}

function refused(): object {
	const missing = { aud: ["https://mcp.example.com/tools/fetch"], scope: [] };
	const result = {
		outcome: "reauthorize",
		code: "audience_not_covered",
		deliver: 0,
		cursor: "41",
		held: { event_id: "48", tool: "fetch", request_id: 8, missing },
		required: { aud: [...missing.aud, search], scope: [] },
		drift: [],
		session: "keep",
		status: 403,
	};
	return { decision_id: "d", path: "mcp/resume/decision", input: resume(payload(search)), result };
}
