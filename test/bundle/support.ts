import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { findOpa } from "../../scripts/opa.ts";
import { type Files, unpack } from "../../src/bundle/archive.ts";
import { pack } from "../../src/bundle/pack.ts";

export const noOpa = await findOpa().then(
	() => false,
	() => true,
);

export interface KeyPair {
	readonly algorithm: string;
	readonly publicKey: string;
	readonly privateKey: string;
}

/** A fresh pair of keys, as PEM. */
export function createKeys(algorithm: string): KeyPair {
	const { publicKey, privateKey } = createKeyObjects(algorithm);
	return {
		algorithm,
		publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
		privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
	};
}

function createKeyObjects(algorithm: string) {
	if (/^[RP]S/.test(algorithm)) return generateKeyPairSync("rsa", { modulusLength: 2048 });
	const namedCurve = { ES256: "P-256", ES384: "P-384", ES512: "P-521" }[algorithm];
	return namedCurve === undefined
		? generateKeyPairSync("ed25519")
		: generateKeyPairSync("ec", { namedCurve });
}

export const ENTRYPOINTS = ["session", "call", "resume", "delivery"].map(
	(moment) => `mcp/${moment}/decision`,
);

const run = promisify(execFile);

/** A folder in which OPA works. */
export interface Workshop {
	readonly folder: string;
	path(name: string): string;
	/** Writes a file, below folders that it makes. */
	write(name: string, content: string | Uint8Array): string;
	/** Rejects with what OPA says. */
	opa(args: readonly string[], folder?: string): Promise<string>;
	/**
	 * Has OPA build a bundle with Wasm from the policies of this repository; what was built once is kept.
	 *
	 * @param manifest `.manifest` of the source
	 */
	build(given?: Build): Promise<Uint8Array>;
	remove(): void;
}

export interface Build {
	readonly manifest?: object;
	/** Further files of the source, or others in place of those that there are. */
	readonly files?: Readonly<Record<string, string>>;
	readonly entrypoints?: readonly string[];
	readonly target?: "wasm" | "rego";
	readonly signing?: Pick<KeyPair, "privateKey" | "algorithm">;
	/** Further arguments. */
	readonly args?: readonly string[];
}

export function openWorkshop(): Workshop {
	const folder = mkdtempSync(join(tmpdir(), "bundle-"));
	const path = (name: string) => join(folder, name);
	const built = new Map<string, Promise<Uint8Array>>();
	let count = 0;

	function write(name: string, content: string | Uint8Array): string {
		mkdirSync(dirname(path(name)), { recursive: true });
		writeFileSync(path(name), content);
		return path(name);
	}

	async function opa(args: readonly string[], cwd = folder): Promise<string> {
		try {
			return (await run(await findOpa(), args, { cwd, maxBuffer: 1 << 28 })).stdout;
		} catch (error) {
			const { stdout, stderr } = error as { stdout?: string; stderr?: string };
			throw new Error(`opa ${args[0]}: ${stderr || stdout || String(error)}`, { cause: error });
		}
	}

	async function build({
		manifest = { roots: ["mcp"] },
		files = {},
		entrypoints = ENTRYPOINTS,
		target = "wasm",
		signing,
		args = [],
	}: Build): Promise<Uint8Array> {
		count += 1;
		const name = `build-${count}`;
		mkdirSync(path(name));
		cpSync("policies", path(`${name}/policies`), { recursive: true });
		for (const [file, content] of Object.entries(files)) write(`${name}/policies/${file}`, content);
		write(`${name}/policies/.manifest`, JSON.stringify(manifest));
		const signed =
			signing === undefined
				? []
				: [
						"--signing-alg",
						signing.algorithm,
						"--signing-key",
						signing.privateKey.includes("BEGIN")
							? write(`${name}/key.pem`, signing.privateKey)
							: signing.privateKey,
					];
		const entries = target === "wasm" ? entrypoints.flatMap((entrypoint) => ["-e", entrypoint]) : [];
		const sources = ["--ignore", "*_test.rego", "--bundle", "policies"];
		await opa(
			["build", "-t", target, ...entries, ...signed, ...args, ...sources, "-o", "out.tar.gz"],
			path(name),
		);
		return readFileSync(path(`${name}/out.tar.gz`));
	}

	return {
		folder,
		path,
		write,
		opa,
		build(given = {}) {
			const key = JSON.stringify(given);
			const found = built.get(key) ?? build(given);
			built.set(key, found);
			return found;
		},
		remove() {
			rmSync(folder, { recursive: true });
		},
	};
}

/** Unpacks a bundle, changes its files, and packs it again. */
export async function damaged(
	bundle: Uint8Array,
	change: (files: Map<string, Uint8Array>) => void | Promise<void>,
): Promise<Uint8Array> {
	const files = new Map(await unpack(bundle));
	await change(files);
	return pack(files);
}

export function json(files: Files, path: string): Record<string, unknown> {
	return JSON.parse(Buffer.from(files.get(path) ?? []).toString());
}

export function setJson(files: Map<string, Uint8Array>, path: string, value: unknown): void {
	files.set(path, Buffer.from(JSON.stringify(value)));
}
