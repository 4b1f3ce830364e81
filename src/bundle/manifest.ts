import { z } from "zod";
import { ResumeGuardError } from "../errors.ts";
import type { Files } from "./archive.ts";
import { readJson } from "./json.ts";

/** A bundle's manifest, as far as it matters here (OPA, "Bundle File Format"). */
export interface Manifest {
	readonly revision: string;
	/** Without slashes at the ends. `""`: all. */
	readonly roots: readonly string[];
	/** Where the entrypoints of Wasm are. */
	readonly wasm: readonly { readonly entrypoint: string; readonly module: string }[];
	/** Grows with each bundle, for rollback protection. */
	readonly sequence: number | undefined;
	/** The bundle's own decision tables, by their names; not looked at yet. */
	readonly tests: Readonly<Record<string, unknown>>;
}

/** Of roots and entrypoints: a bundle of this package has one, and four. */
const MOST = 1024;
/** Characters. */
const LONGEST_ROOT = 1024;

/** This package's part of the metadata. OPA's tools keep it, and the signature covers it. */
const own = z.strictObject({
	sequence: z.int().min(0).optional(),
	tests: z.record(z.string(), z.unknown()).optional(),
});

const manifest = z.object({
	revision: z.string().default(""),
	roots: z.array(z.string().max(LONGEST_ROOT)).max(MOST).default([""]),
	wasm: z
		.array(z.object({ entrypoint: z.string(), module: z.string() }))
		.max(MOST)
		.default([]),
	metadata: z.object({ mcp_resume_guard: own.optional() }).optional(),
});

const MANIFEST = ".manifest";

/** @throws {ResumeGuardError} `bundle_invalid` */
export function readManifest(files: Files): Manifest {
	for (const path of files.keys()) refuseUnread(path);
	const content = files.get(MANIFEST);
	const read = manifest.safeParse(content === undefined ? {} : readJson(MANIFEST, content));
	if (!read.success) {
		const [issue] = read.error.issues;
		throw invalid(`${MANIFEST}: /${issue?.path.map(String).join("/")}: ${issue?.message}`);
	}
	const { revision, roots, wasm, metadata } = read.data;
	return {
		revision,
		roots: roots.map((root) => root.replace(/^\/+|\/+$/g, "")),
		wasm: wasm.map(({ entrypoint, module }) => ({ entrypoint, module: module.replace(/^\//, "") })),
		sequence: metadata?.mcp_resume_guard?.sequence,
		tests: metadata?.mcp_resume_guard?.tests ?? {},
	};
}

// What OPA would read and this does not is no detail: the bundle would decide otherwise here than there.
function refuseUnread(path: string): void {
	const name = path.split("/").at(-1) ?? "";
	if (path !== MANIFEST && /\.manifest(?:\.pb)?$/.test(name))
		throw invalid(`${path}: not ${MANIFEST} as JSON`);
	if (/^data\.ya?ml$/.test(name)) throw invalid(`${path}: data is not read as YAML`);
	if (path === "patch.json") throw invalid("it is a delta bundle");
}

function invalid(what: string): ResumeGuardError {
	return new ResumeGuardError("bundle_invalid", `the bundle cannot be used: ${what}`);
}
