import { Readable, Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { run } from "../../src/cli/program.ts";
import { moments } from "./questions.ts";
import { Collector } from "./support.ts";

const line = Buffer.from(`${JSON.stringify(moments.session)}\n`);

test("reads no further while its answers have not gone out", async () => {
	const total = 200;
	let read = 0;
	let written = 0;
	const ahead: number[] = [];
	const stdin = Readable.from(
		(function* () {
			for (; read < total; read++) yield line;
		})(),
		{ objectMode: false, highWaterMark: 1 },
	);
	const stdout = new Writable({
		async write(chunk: Buffer, _encoding, done) {
			// Time enough to read all of it.
			for (let turn = 0; turn < 20; turn++) await setImmediate();
			written += chunk.toString().split("\n").length - 1;
			ahead.push(read - written);
			done();
		},
	});
	expect(await run(["decide"], { stdin, stdout, stderr: new Collector() })).toBe(0);
	expect(written).toBe(total);
	expect(Math.max(...ahead)).toBeLessThan(5);
});

test("ends without a word when nobody reads its answers any more, and stops reading", async () => {
	let written = 0;
	const stdout = new Writable({
		write(_chunk, _encoding, done) {
			written += 1;
			done(written < 3 ? null : Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
		},
	});
	const stderr = new Collector();
	const stdin = Readable.from(forever(), { objectMode: false });
	expect(await run(["decide"], { stdin, stdout, stderr })).toBe(0);
	expect(written).toBe(3);
	expect(stdin.destroyed).toBe(true);
	expect(stderr.text).toBe("");
});

test.each([
	[
		"output",
		{ stdout: new Writable({ write: (_chunk, _encoding, done) => done(new Error("no space left")) }) },
	],
	[
		"input",
		{
			stdin: new Readable({
				read() {
					this.destroy(new Error("no space left"));
				},
			}),
		},
	],
])("%s that fails is said, and exits with 2", async (_, broken) => {
	const stderr = new Collector();
	const stdin = Readable.from(forever(), { objectMode: false });
	expect(await run(["decide"], { stdin, stdout: new Collector(), stderr, ...broken })).toBe(2);
	expect(stderr.text).toBe("mcp-resume-guard: no space left\n");
});

function* forever() {
	for (;;) yield line;
}
