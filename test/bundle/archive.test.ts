import { gzipSync } from "node:zlib";
import { packTar, type TarHeader } from "modern-tar";
import { describe, expect, it } from "vitest";
import { LIMITS, unpack } from "../../src/bundle/archive.ts";
import { pack } from "../../src/bundle/pack.ts";

type Entry = readonly [name: string, header?: Partial<TarHeader>, body?: string | Uint8Array];

async function archiveOf(...entries: Entry[]): Promise<Uint8Array> {
	const tar = await packTar(
		entries.map(([name, header, body = ""]) => ({
			header: { name, size: Buffer.from(body).length, type: "file", ...header },
			body,
		})),
	);
	return gzipSync(tar);
}

function refusal(code: string, message: RegExp) {
	return { name: "ResumeGuardError", code, message: expect.stringMatching(message) };
}

describe("an archive's files", () => {
	it.each([
		["as OPA writes them", "/data.json"],
		["as tar writes them", "./data.json"],
		["without either", "data.json"],
	])("%s", async (_, name) => {
		const files = await unpack(await archiveOf([name, {}, "{}"]));
		expect([...files.keys()]).toEqual(["data.json"]);
	});

	it("with folders, which are no files", async () => {
		const archive = await archiveOf(
			["./", { type: "directory" }],
			["mcp/", { type: "directory" }],
			["mcp/x y.é", {}, "1"],
		);
		expect([...(await unpack(archive)).keys()]).toEqual(["mcp/x y.é"]);
	});

	it("with long names", async () => {
		const name = `${"folder/".repeat(60)}data.json`;
		expect([...(await unpack(await archiveOf([name]))).keys()]).toEqual([name]);
	});

	it("that were packed here are the same, and so is the archive", async () => {
		const files = new Map([
			["data.json", Buffer.from("{}")],
			[".manifest", Buffer.from("[]")],
			[`mcp/${"long/".repeat(50)}policy.wasm`, Buffer.alloc(100_000, 7)],
		]);
		const archive = await pack(files);
		expect(await pack(files)).toEqual(archive);
		expect([...(await unpack(archive))].map(([path, content]) => [path, Buffer.from(content)])).toEqual([
			...files,
		]);
	});
});

describe("an archive is refused for", () => {
	it.each<[string, Entry[]]>([
		["a name twice", [["data.json"], ["data.json"]]],
		["a name twice, with and without a slash", [["data.json"], ["/data.json"]]],
		["a name twice, with and without a dot", [["data.json"], ["./data.json"]]],
		["a parent folder", [["../data.json"]]],
		["a parent folder at the root", [["/../data.json"]]],
		["a parent folder in between", [["mcp/../../data.json"]]],
		["a parent folder at the end", [["mcp/.."]]],
		["a parent folder as a folder", [["../", { type: "directory" }]]],
		["a dot folder", [["mcp/./data.json"]]],
		["two slashes at the front", [["//etc/passwd"]]],
		["two slashes in between", [["mcp//data.json"]]],
		["a drive", [["C:/data.json"]]],
		["a backslash", [["..\\data.json"]]],
		["a control character", [["data\u0007.json"]]],
		["a direction mark", [["data\u202e.json"]]],
		["no UTF-8", [["data\ufffd", { pax: { path: "a\u0000b" } }]]],
		["a symbolic link", [["data.json", { type: "symlink", linkname: "/etc/passwd" }]]],
		["a hard link", [["data.json", { type: "link", linkname: "other.json" }]]],
		["a device", [["data.json", { type: "character-device" }]]],
		["a pipe", [["data.json", { type: "fifo" }]]],
	])("%s", async (_, entries) => {
		const archive = await archiveOf(...entries);
		const failed = expect(unpack(archive)).rejects;
		await failed.toMatchObject(refusal("bundle_invalid", /^the bundle cannot be read: "[ -~]*" is/));
	});

	it.each<[string, () => Uint8Array | Promise<Uint8Array>]>([
		["no bytes", () => new Uint8Array()],
		["bytes that are not gzipped", () => Buffer.from("data")],
		["a gzip that is cut off", async () => (await archiveOf(["x", {}, "1"])).subarray(0, 40)],
		[
			"a gzip with a wrong checksum",
			async () => {
				const archive = await archiveOf(["x", {}, "1"]);
				archive[archive.length - 6] = (archive[archive.length - 6] ?? 0) ^ 1;
				return archive;
			},
		],
		["no tar", () => gzipSync(Buffer.alloc(2048, 1))],
		["an empty tar", () => gzipSync(Buffer.alloc(0))],
		["a tar that is cut off in a file", () => gzipSync(Buffer.from("x".repeat(700)))],
	])("%s", async (_, archive) => {
		const files = unpack(await archive()).then((found) => found.size);
		await expect(
			files.then((size) => (size === 0 ? Promise.reject({ code: "bundle_invalid" }) : size)),
		).rejects.toMatchObject({
			code: "bundle_invalid",
		});
	});

	it("a tar that is cut off", async () => {
		const tar = await packTar([{ header: { name: "x", size: 2000 }, body: "1".repeat(2000) }]);
		for (const length of [600, 1024, 2000, 2560, tar.length - 512]) {
			await expect(unpack(gzipSync(tar.subarray(0, length)))).rejects.toMatchObject({
				code: "bundle_invalid",
			});
		}
	});

	it("more bytes than there may be", async () => {
		await expect(unpack(new Uint8Array(LIMITS.packed + 1))).rejects.toMatchObject(
			refusal("bundle_too_large", /more than 16777216 bytes$/),
		);
	});

	it("more bytes when unpacked: no more than those are inflated", async () => {
		// 1 GiB in 1 MiB.
		const bomb = gzipSync(Buffer.alloc(1 << 28)).subarray();
		const bombs = Buffer.concat([bomb, bomb, bomb, bomb]);
		const before = process.memoryUsage().rss;
		await expect(unpack(bombs)).rejects.toMatchObject(refusal("bundle_too_large", /when unpacked/));
		expect(process.memoryUsage().rss - before).toBeLessThan(3 * LIMITS.unpacked);
	});

	it("more entries than there may be, empty ones and folders too", async () => {
		for (const type of ["file", "directory"] as const) {
			const entries = Array.from({ length: LIMITS.entries + 1 }, (_, i): Entry => [`x${i}`, { type }]);
			await expect(unpack(await archiveOf(...entries))).rejects.toMatchObject(
				refusal("bundle_too_large", /entries/),
			);
		}
	});

	it("a file that says to be larger than the archive", async () => {
		const tar = await packTar([{ header: { name: "x", size: 1 }, body: "1" }]);
		const header = Buffer.from(tar);
		header.write("77777777777\0", 124);
		header.fill(" ", 148, 156);
		const sum = header.subarray(0, 512).reduce((total, byte) => total + byte, 0);
		header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
		await expect(unpack(gzipSync(header))).rejects.toMatchObject({ code: "bundle_invalid" });
	});
});
