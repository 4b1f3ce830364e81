import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { expect, onTestFinished, test } from "vitest";
import { moments, payload, resume, search } from "./questions.ts";
import { readLines, toLines } from "./support.ts";

// The program itself, as a process of its own.

test("answers a question while it waits for the next one", async () => {
	const child = start(["decide"]);
	const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
	for (const token of [search, "https://mcp.example.com"]) {
		child.stdin.write(toLines([resume(payload(token))]));
		const { value } = await answers.next();
		expect(JSON.parse(value)).toMatchObject({ outcome: token === search ? "reauthorize" : "proceed" });
	}
	child.stdin.end();
	expect(await exitOf(child)).toBe(0);
});

test("exits with 1 after a line that is no question", async () => {
	const child = start(["decide"]);
	child.stdin.end(`x\n${JSON.stringify(moments.call)}`);
	const answers = readLines(await text(child.stdout));
	expect(answers).toMatchObject([{ error: { code: "invalid_line" } }, { outcome: "proceed" }]);
	expect(await exitOf(child)).toBe(1);
});

test("exits with 2 at once if it cannot begin, though input is open", async () => {
	const child = start(["decide", "--policy", "/nowhere/to/be/found"]);
	expect(await text(child.stderr)).toMatch(/cannot be read/);
	expect(await exitOf(child)).toBe(2);
});

test("ends without a word when its reader leaves", async () => {
	const child = start(["decide"]);
	child.stdin.on("error", () => {});
	const fed = pipeline(Readable.from(forever()), child.stdin).catch(() => {});
	await once(child.stdout, "data");
	child.stdout.destroy();
	expect(await text(child.stderr)).toBe("");
	expect(await exitOf(child)).toBe(0);
	await fed;
});

test("needs no more memory for more lines", { timeout: 60_000 }, async () => {
	const count = 200_000;
	const child = start(["decide"], ["--max-old-space-size=32"]);
	const fed = pipeline(Readable.from(some(count)), child.stdin);
	let answered = 0;
	for await (const chunk of child.stdout) answered += String(chunk).split("\n").length - 1;
	await fed;
	expect(answered).toBe(count);
	expect(await exitOf(child)).toBe(1);
});

/** Most of them are no question, which costs little to find out; together far more than the heap may hold. */
function* some(count: number): Generator<string> {
	const noQuestion = "x".repeat(400);
	const hundred = toLines([noQuestion, noQuestion, noQuestion, moments.session]).repeat(25);
	for (let made = 0; made < count; made += 100) yield hundred;
}

function* forever(): Generator<string> {
	for (;;) yield toLines([moments.session]);
}

function start(argv: readonly string[], flags: readonly string[] = []): ChildProcessWithoutNullStreams {
	const child = spawn(process.execPath, [...flags, "--import", "tsx", "src/cli/main.ts", ...argv]);
	onTestFinished(() => {
		child.kill();
	});
	return child;
}

async function exitOf(child: ChildProcessWithoutNullStreams): Promise<number | null> {
	if (child.exitCode === null) await once(child, "exit");
	return child.exitCode;
}
