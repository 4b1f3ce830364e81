import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { onTestFinished } from "vitest";
import { run } from "../../src/cli/program.ts";

export interface Result {
	readonly exitCode: number;
	readonly stdout: string;
	readonly stderr: string;
}

/** Runs the command line in this process, on these bytes in these chunks. */
export async function runOn(chunks: Iterable<string | Uint8Array>, ...argv: string[]): Promise<Result> {
	const stdout = new Collector();
	const stderr = new Collector();
	const stdin = Readable.from(bytesOf(chunks), { objectMode: false });
	const exitCode = await run(argv, { stdin, stdout, stderr });
	return { exitCode, stdout: stdout.text, stderr: stderr.text };
}

/** Runs `decide` on these bytes in these chunks. */
export async function decideOn(
	chunks: Iterable<string | Uint8Array>,
	...argv: string[]
): Promise<Result & { answers: unknown[] }> {
	const result = await runOn(chunks, "decide", ...argv);
	return { ...result, answers: readLines(result.stdout) };
}

/** Runs `decide` on these questions, a line for each. */
export function decide(questions: readonly unknown[], ...argv: string[]) {
	return decideOn([toLines(questions)], ...argv);
}

export function toLines(values: readonly unknown[]): string {
	return values.map((value) => `${JSON.stringify(value)}\n`).join("");
}

export function readLines(text: string): unknown[] {
	if (text === "") return [];
	if (!text.endsWith("\n")) throw new Error("the last line has no line feed");
	return text
		.slice(0, -1)
		.split("\n")
		.map((line) => JSON.parse(line));
}

/** A file that is gone after the test. */
export function temporaryFile(name: string, content: string | Uint8Array): string {
	const folder = mkdtempSync(join(tmpdir(), "cli-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	const path = join(folder, name);
	writeFileSync(path, content);
	return path;
}

/** Policy data as it ships, with some of it changed. */
export function dataFile(changes: object): string {
	const shipped = JSON.parse(readFileSync("policies/mcp/data.json", "utf8"));
	return temporaryFile("data.json", JSON.stringify({ ...shipped, ...changes }));
}

function* bytesOf(chunks: Iterable<string | Uint8Array>): Generator<Uint8Array> {
	for (const chunk of chunks) yield Buffer.from(chunk);
}

export class Collector extends Writable {
	text = "";

	override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
		this.text += chunk.toString();
		done();
	}
}
