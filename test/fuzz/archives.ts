import { gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { packTar } from "modern-tar";
import { unpack } from "../../src/bundle/archive.ts";
import { mutatedJson, mutatedText } from "./json.ts";

type Bytes = Uint8Array;

const BLOCK = 512;

/** Of a header of tar (POSIX ustar): where they begin. */
const FIELDS = {
	name: [0, 100],
	mode: [100, 8],
	size: [124, 12],
	mtime: [136, 12],
	checksum: [148, 8],
	type: [156, 1],
	linkname: [157, 100],
	magic: [257, 8],
	prefix: [345, 155],
} as const;

const fieldTexts = fc.oneof(
	fc.constantFrom(
		"data.json",
		"/data.json",
		"./policy.wasm",
		".manifest",
		".signatures.json",
		"../data.json",
		"mcp/data.json",
		"mcp/tools/data.json",
		"a\u001b[2J",
		"00000000000\0",
		"77777777777\0",
		"00000001000\0",
		"-0000000001\0",
		"\u0080\0\0\0\0\0\0\0\0\0\x02\0",
		"\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff",
		"",
		" ",
	),
	fc.constantFrom(..."01234567gxLKDSVNX"),
	fc.string({ unit: "binary", maxLength: 12 }),
);

/** Archives that are nearly this one: bytes, headers and files of it are others, moved or missing. */
export async function mutatedArchives(archive: Bytes): Promise<fc.Arbitrary<Promise<Bytes>>> {
	const tar = gunzipSync(archive);
	const files = await unpack(archive);
	const headers = headersIn(tar);
	const paths = fc.constantFrom(...files.keys());
	const texts = fc.oneof(
		...[...files]
			.filter(([path]) => /json$|manifest$/.test(path))
			.map(([path, content]) => {
				const text = Buffer.from(content).toString();
				const value: unknown = JSON.parse(text);
				return fc
					.oneof(mutatedJson(value), mutatedText(text), fc.constant(JSON.stringify(value, undefined, "\t")))
					.map((other) => [path, Buffer.from(other)] as const);
			}),
	);
	const inTar = (arbitrary: fc.Arbitrary<Bytes>) =>
		arbitrary.map(async (bytes): Promise<Bytes> => gzipSync(bytes, { level: 1 }));
	const inFiles = <T>(arbitrary: fc.Arbitrary<T>, change: (files: Map<string, Bytes>, by: T) => void) =>
		arbitrary.map((by): Promise<Bytes> => {
			const others = new Map(files);
			change(others, by);
			return packed(others);
		});

	return fc.oneof(
		{ weight: 2, arbitrary: mutatedBytes(archive).map(async (bytes) => bytes) },
		{ weight: 3, arbitrary: inTar(mutatedBytes(tar)) },
		{
			weight: 4,
			arbitrary: inTar(
				fc
					.tuple(
						fc.constantFrom(...headers),
						fc.constantFrom(...Object.values(FIELDS)),
						fieldTexts,
						fc.boolean(),
					)
					.map(([at, [start, length], text, sums]) => {
						const other = Buffer.from(tar);
						other.fill(0, at + start, at + start + length);
						other.write(text, at + start, length, "latin1");
						if (sums) writeChecksum(other, at);
						return other;
					}),
			),
		},
		{
			weight: 2,
			arbitrary: inTar(
				fc.tuple(fc.nat(), fc.nat(), fc.boolean()).map(([from, to, removes]) => {
					const blocks = tar.length / BLOCK;
					const block = tar.subarray((from % blocks) * BLOCK, ((from % blocks) + 1) * BLOCK);
					const at = (to % blocks) * BLOCK;
					return Buffer.concat([tar.subarray(0, at), block, tar.subarray(at + (removes ? BLOCK : 0))]);
				}),
			),
		},
		{ weight: 6, arbitrary: inFiles(texts, (others, [path, content]) => others.set(path, content)) },
		{
			weight: 2,
			arbitrary: inFiles(
				paths.chain((path) => fc.tuple(fc.constant(path), mutatedBytes(files.get(path) ?? new Uint8Array()))),
				(others, [path, content]) => others.set(path, content),
			),
		},
		{
			weight: 3,
			arbitrary: inFiles(
				fc.tuple(
					paths,
					fc.oneof(
						paths,
						fieldTexts.filter((text) => text !== ""),
					),
					fc.boolean(),
				),
				(others, [path, name, keeps]) => {
					const content = others.get(path) ?? new Uint8Array();
					if (!keeps) others.delete(path);
					others.set(name, content);
				},
			),
		},
	);
}

/** Bytes of which one, or a run of them, is another, missing or there twice; or the end is. */
function mutatedBytes(bytes: Bytes): fc.Arbitrary<Bytes> {
	const at = fc.nat({ max: Math.max(bytes.length - 1, 0) });
	const from = Buffer.from(bytes);
	return fc.oneof(
		at.map((end) => from.subarray(0, end)),
		fc.tuple(at, fc.nat({ max: 7 })).map(([index, bit]) => {
			const other = Buffer.from(from);
			other[index] = (other[index] ?? 0) ^ (1 << bit);
			return other;
		}),
		fc
			.tuple(at, fc.nat({ max: 40 }), fc.uint8Array({ maxLength: 40 }))
			.map(([index, removed, more]) =>
				Buffer.concat([from.subarray(0, index), more, from.subarray(index + removed)]),
			),
		fc.constantFrom(Buffer.concat([from, from]), Buffer.concat([from, Buffer.alloc(10)])),
	);
}

/** At once: `pack` compresses as well as it can. */
async function packed(files: ReadonlyMap<string, Bytes>): Promise<Bytes> {
	const entries = [...files].map(([name, body]) => ({ header: { name, size: body.length }, body }));
	return gzipSync(await packTar(entries), { level: 1 });
}

function headersIn(tar: Buffer): number[] {
	const found: number[] = [];
	for (let at = 0; at < tar.length && tar[at] !== 0; ) {
		found.push(at);
		const size = Number.parseInt(tar.toString("latin1", at + 124, at + 135), 8);
		at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
	}
	return found;
}

function writeChecksum(tar: Buffer, at: number): void {
	tar.fill(" ", at + 148, at + 156);
	const sum = tar.subarray(at, at + BLOCK).reduce((total, byte) => total + byte, 0);
	tar.write(`${sum.toString(8).padStart(6, "0")}\0 `, at + 148, "latin1");
}
