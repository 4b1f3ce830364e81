import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { namedSchemas, readSchemas } from "../../scripts/schemas.ts";

let folder: string;
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "schemas-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, schema: object) => writeFileSync(join(folder, name), JSON.stringify(schema));
const name = { type: "string" };

test("a definition that two schemas share has one name", () => {
	write("a.json", { title: "A", $defs: { Name: name } });
	write("b.json", { title: "B", $defs: { Name: name } });
	expect([...namedSchemas(readSchemas(folder)).keys()]).toEqual(["A", "Name", "B"]);
});

test("two definitions of one name are refused, and the message says where they are", () => {
	write("a.json", { title: "A", $defs: { Name: name } });
	write("b.json", { title: "B", $defs: { Name: { type: "number" } } });
	expect(() => namedSchemas(readSchemas(folder))).toThrow(
		"Name is not the same in schemas/a.json and schemas/b.json",
	);
});

test.each([
	["no title", {}, /needs a title/],
	["a title that names no type", { title: "the facts" }, /needs a title/],
	[
		"a definition that names no type",
		{ title: "A", $defs: { "a-b": name } },
		/\$defs\/a-b cannot name a type/,
	],
])("a schema with %s is refused", (_, schema, message) => {
	write("a.json", schema);
	expect(() => readSchemas(folder)).toThrow(message);
});

test("a folder without schemas is refused", () => {
	expect(() => readSchemas(folder)).toThrow("no schema found");
});
