import { describe, expect, test } from "vitest";
import { type Line, splitLines } from "../../src/cli/lines.ts";
import { moments } from "./questions.ts";
import { decideOn } from "./support.ts";

const LIMIT = 16 * 1024 * 1024;

const good = JSON.stringify(moments.call);
const proceed = { outcome: "proceed" };
const invalid = (message: string) => ({ error: { code: "invalid_line", message } });
const noMoment = invalid("no moment: one of session, call, resume, delivery");

test.each<[name: string, line: string | Uint8Array, answer: object]>([
	["an empty line", "", invalid("not JSON")],
	["white space", " \t", invalid("not JSON")],
	["text", "hello", invalid("not JSON")],
	["half an object", '{"moment":"call"', invalid("not JSON")],
	["two objects", "{}{}", invalid("not JSON")],
	["null", "null", invalid("not an object")],
	["a number", "1", invalid("not an object")],
	["a string", '"call"', invalid("not an object")],
	["an array", "[{}]", invalid("not an object")],
	["no moment", "{}", noMoment],
	["an unknown moment", '{"moment":"login"}', noMoment],
	["a moment that every object has", '{"moment":"constructor"}', noMoment],
	["a moment that is another part of the guard", '{"moment":"data"}', noMoment],
	["a moment that is no string", '{"moment":["call"]}', noMoment],
	["a moment by way of the prototype", '{"__proto__":{"moment":"call"}}', noMoment],
	["bytes that are not UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), invalid("not UTF-8")],
	["half a character", Buffer.from([0x22, 0xc3]), invalid("not UTF-8")],
])("%s is answered with an error in its place", async (_, line, answer) => {
	const result = await decideOn([`${good}\n`, line, `\n${good}\n`]);
	expect(result.answers).toMatchObject([proceed, answer, proceed]);
	expect(result.answers[1]).toEqual(answer);
	expect(result.exitCode).toBe(1);
	expect(result.stderr).toBe("");
});

test("an error says nothing of what was in the line", async () => {
	const { answers, stdout, stderr } = await decideOn(['{"moment":"call","presented":{"sub":"alice"}} x']);
	expect(answers).toEqual([invalid("not JSON")]);
	expect(stdout + stderr).not.toContain("alice");
});

test("an object too deep to be looked at is refused", async () => {
	const nested = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
	const deep = good.replace('"sub"', `"cnf":${nested},"sub"`);
	const { answers } = await decideOn([`${deep}\n${good}\n`]);
	expect(answers).toMatchObject([{ outcome: "refuse" }, proceed]);
});

test("chunks may end anywhere", async () => {
	const bytes = Buffer.from(`${good.replaceAll("alice", "Zoë 🦉")}\r\nx\n${good}`);
	const { answers } = await decideOn([...bytes].map((byte) => Buffer.of(byte)));
	expect(answers).toMatchObject([proceed, invalid("not JSON"), proceed]);
});

test("a line longer than 16 MiB is answered with an error, and nothing of it is kept", async () => {
	const chunk = Buffer.alloc(64 * 1024, " ");
	function* chunks() {
		for (let length = 0; length <= LIMIT; length += chunk.length) yield chunk;
		yield `${good}\n${good}\n`;
	}
	const { answers } = await decideOn(chunks());
	expect(answers).toMatchObject([invalid(`longer than ${LIMIT} bytes`), proceed]);
});

describe("splits into lines", () => {
	const text = (text: string) => ({ text });
	const tooLong = { problem: "longer than 8 bytes" };

	test.each<[input: string, lines: object[]]>([
		["", []],
		["\n", [text("")]],
		["a", [text("a")]],
		["a\n", [text("a")]],
		["a\nb", [text("a"), text("b")]],
		["\n\na\n\n", [text(""), text(""), text("a"), text("")]],
		["a\r\nb\r\n", [text("a\r"), text("b\r")]],
		["é\n🦉🦉\nz", [text("é"), text("🦉🦉"), text("z")]],
		["12345678\n", [text("12345678")]],
		["12345678", [text("12345678")]],
		["123456789\n1", [tooLong, text("1")]],
		["1\n123456789", [text("1"), tooLong]],
		["1234567890123456789012\n1", [tooLong, text("1")]],
		["🦉🦉\n🦉🦉.\n🦉", [text("🦉🦉"), tooLong, text("🦉")]],
	])("%j, whatever the chunks", async (input, expected) => {
		const bytes = Buffer.from(input);
		for (let size = 1; size <= bytes.length + 1; size++) {
			const lines: Line[] = [];
			for await (const some of splitLines(chunksOf(bytes, size), 8)) lines.push(...some);
			expect(lines).toEqual(expected);
		}
	});

	test("what one chunk completes comes together", async () => {
		const batches: Line[][] = [];
		for await (const lines of splitLines(chunksOf(Buffer.from("1\n2\n3\n4"), 5), 8)) batches.push(lines);
		expect(batches).toEqual([[text("1"), text("2")], [text("3")], [text("4")]]);
	});
});

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
	for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}
