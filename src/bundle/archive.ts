import type { TarHeader, UnpackOptions } from "modern-tar";
import { ResumeGuardError } from "../errors.ts";

/** The files of a bundle, by their path without the slash at the front: `mcp/data.json`. */
export type Files = ReadonlyMap<string, Uint8Array>;

const MIB = 1024 * 1024;

/** What a bundle may have at most. The one of this package has 0.3 MiB in 16 files. */
export const LIMITS = { packed: 16 * MIB, unpacked: 64 * MIB, entries: 1024 } as const;

/** Folders within each other: a data file is as deep in the data as it is in folders. */
const DEEPEST = 100;

/**
 * Unpacks a gzipped tar archive, in memory, within the limits: no more is inflated than there may be. It has plain
 * files and folders only, each name once, none of which leads out of the archive.
 *
 * @throws {ResumeGuardError} `bundle_too_large`, `bundle_invalid`
 */
export async function unpack(archive: Uint8Array): Promise<Files> {
	if (archive.byteLength > LIMITS.packed) throw tooLarge(`more than ${LIMITS.packed} bytes`);
	const { unpackTar } = await import("modern-tar");
	const files = new Map<string, Uint8Array>();
	const tar = await inflate(archive);
	const entries = await unpackTar(tar, { strict: true, filter: createEntryCheck() }).catch((cause) => {
		throw cause instanceof ResumeGuardError ? cause : invalid("it is not a tar archive", cause);
	});
	for (const { header, data } of entries) {
		if (header.type === "file") files.set(pathOf(header.name), data ?? new Uint8Array());
	}
	return files;
}

async function inflate(archive: Uint8Array): Promise<Uint8Array> {
	const { gunzip } = await import("node:zlib");
	return new Promise((resolve, reject) => {
		gunzip(archive, { maxOutputLength: LIMITS.unpacked }, (error: NodeJS.ErrnoException | null, tar) => {
			if (error === null) resolve(tar);
			else if (error.code === "ERR_BUFFER_TOO_LARGE") {
				reject(tooLarge(`more than ${LIMITS.unpacked} bytes when unpacked`));
			} else reject(invalid("it is not gzipped", error));
		});
	});
}

/** Called with each header before the entry is kept. */
function createEntryCheck(): NonNullable<UnpackOptions["filter"]> {
	const seen = new Set<string>();
	let count = 0;
	return ({ name, type }: TarHeader) => {
		count += 1;
		if (count > LIMITS.entries) throw tooLarge(`more than ${LIMITS.entries} entries`);
		if (type !== "file" && type !== "directory") throw invalid(`${quoted(name)} is a ${type}`);
		const path = pathOf(name);
		if (type === "directory") return false;
		if (seen.has(path)) throw invalid(`${quoted(name)} is in it twice`);
		seen.add(path);
		return true;
	};
}

// OPA writes one slash at the front, tar a dot before it, or neither.
function pathOf(name: string): string {
	const path = name.replace(/^\.?\//, "");
	const segments = path.replace(/\/$/, "").split("/");
	const leadsOut = (segment: string) => segment === "" || segment === "." || segment === "..";
	const isPath = segments.length <= DEEPEST && !segments.some(leadsOut) && /^[^\p{C}\\:]+$/u.test(path);
	if (path !== "" && !isPath) {
		throw invalid(`${quoted(name)} is no path of a file in a bundle`);
	}
	return path;
}

// A name may have anything in it, terminal sequences too.
function quoted(name: string): string {
	return JSON.stringify(name.slice(0, 200)).replace(/[^\x20-\x7e]/g, "?");
}

export function tooLarge(what: string): ResumeGuardError {
	return new ResumeGuardError("bundle_too_large", `the bundle has ${what}`);
}

function invalid(what: string, cause?: unknown): ResumeGuardError {
	return new ResumeGuardError("bundle_invalid", `the bundle cannot be read: ${what}`, { cause });
}
