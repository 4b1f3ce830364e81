import { ResumeGuardError } from "../errors.ts";
import { MOMENTS } from "../policy.ts";
import type { Files } from "./archive.ts";
import { readJson } from "./json.ts";
import type { Manifest } from "./manifest.ts";

/** What decides. */
export interface Content {
	/** What is under `mcp`; not looked at yet. */
	readonly data: unknown;
	readonly wasm: Uint8Array;
}

/** Roots by their segments. */
interface Tree {
	isRoot: boolean;
	readonly below: Map<string, Tree>;
}

/** The root that the policies of this package have. */
const ROOT = "mcp";

/**
 * Takes out of a bundle what decides, as OPA would: the data files merged into one document, of which `mcp` is policy
 * data, and the Wasm that the manifest names for the entrypoints. All of it is below the manifest's roots.
 *
 * @throws {ResumeGuardError} `bundle_invalid`, `bundle_roots_invalid`, `policy_invalid`, `data_invalid`
 */
export function readContent(files: Files, { roots, wasm }: Manifest): Content {
	const tree = treeOf(roots);
	const document = readDocument(files);
	checkData(document, tree);
	const modules = new Map<string, string>();
	for (const { entrypoint, module } of wasm) {
		if (!isWithin(tree, entrypoint)) throw badRoots(`they do not permit the entrypoint ${entrypoint}`);
		if (!files.has(module)) throw badPolicy(`the bundle has no ${module}, which its manifest names`);
		if (modules.has(entrypoint)) throw badPolicy(`the bundle names ${entrypoint} twice`);
		modules.set(entrypoint, module);
	}
	const wanted = MOMENTS.map((moment) => `${ROOT}/${moment}/decision`);
	const missing = wanted.filter((entrypoint) => !modules.has(entrypoint));
	if (missing.length > 0) throw badPolicy(`the bundle has no entrypoint ${missing.join(", ")}`);
	const [module, another] = new Set(wanted.map((entrypoint) => modules.get(entrypoint)));
	const content = files.get(module ?? "");
	if (content === undefined || another !== undefined) {
		throw badPolicy("the bundle has its entrypoints in more than one Wasm");
	}
	if (!isObject(document) || !Object.hasOwn(document, ROOT)) {
		throw new ResumeGuardError("data_invalid", `policy data: the bundle has none under ${ROOT}`);
	}
	return { data: document[ROOT], wasm: content };
}

function treeOf(roots: readonly string[]): Tree {
	const tree: Tree = { isRoot: false, below: new Map() };
	for (const root of roots) {
		let at = tree;
		for (const segment of segmentsOf(root)) {
			if (at.isRoot) throw badRoots("two of them overlap");
			const next = at.below.get(segment) ?? { isRoot: false, below: new Map() };
			at.below.set(segment, next);
			at = next;
		}
		if (at.isRoot || at.below.size > 0) throw badRoots("two of them overlap");
		at.isRoot = true;
	}
	if (!isWithin(tree, ROOT)) throw badRoots(`none of them is ${ROOT}`);
	return tree;
}

/** Merges `data.json` of the root and of folders, each at the place that its folder names. */
function readDocument(files: Files): unknown {
	let document: unknown = {};
	for (const [path, content] of files) {
		const folders = path.split("/");
		if (folders.pop() !== "data.json") continue;
		const value = readJson(path, content);
		if (folders.length === 0 && !isObject(value)) throw conflict(path);
		const placed = folders.reduceRight((below: unknown, folder) => objectOf([[folder, below]]), value);
		document = merge(document, placed, path);
	}
	return document;
}

function merge(one: unknown, other: unknown, path: string): unknown {
	if (!isObject(one) || !isObject(other)) throw conflict(path);
	const members = new Map(Object.entries(one));
	for (const [name, value] of Object.entries(other)) {
		members.set(name, members.has(name) ? merge(members.get(name), value, path) : value);
	}
	return objectOf(members);
}

// Defines each member, whatever its name is, `__proto__` too.
function objectOf(members: Iterable<readonly [string, unknown]>): Record<string, unknown> {
	return Object.fromEntries(members);
}

function checkData(value: unknown, tree: Tree | undefined, path: readonly string[] = []): void {
	if (tree?.isRoot) return;
	if (tree === undefined || !isObject(value)) throw badRoots(`they do not permit data at /${path.join("/")}`);
	for (const [name, member] of Object.entries(value)) {
		checkData(member, tree.below.get(name), [...path, name]);
	}
}

function isWithin(tree: Tree, path: string): boolean {
	let at: Tree | undefined = tree;
	for (const segment of segmentsOf(path)) {
		if (at?.isRoot) return true;
		at = at?.below.get(segment);
	}
	return at?.isRoot === true;
}

function segmentsOf(path: string): readonly string[] {
	return path === "" ? [] : path.split("/");
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function conflict(path: string): ResumeGuardError {
	return new ResumeGuardError(
		"bundle_invalid",
		`the bundle cannot be used: ${path} does not fit beside other data`,
	);
}

function badRoots(what: string): ResumeGuardError {
	return new ResumeGuardError("bundle_roots_invalid", `the roots of the bundle are not good: ${what}`);
}

function badPolicy(what: string): ResumeGuardError {
	return new ResumeGuardError("policy_invalid", what);
}
