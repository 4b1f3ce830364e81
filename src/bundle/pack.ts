import { gzipSync } from "node:zlib";
import type { Files } from "./archive.ts";

const OS_BYTE = 9;
const UNKNOWN_OS = 255;

/** Packs files as OPA does, in their order. The same files make the same bytes. */
export async function pack(files: Files): Promise<Uint8Array> {
	const { packTar } = await import("modern-tar");
	const entries = [...files].map(([path, body]) => ({
		header: { name: `/${path}`, size: body.length, mode: 0o600, mtime: new Date(0) },
		body,
	}));
	const archive = gzipSync(await packTar(entries), { level: 9 });
	// RFC 1952 section 2.3: or it would say where it was made.
	archive[OS_BYTE] = UNKNOWN_OS;
	return archive;
}
