import { createHmac } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CompactSign, importPKCS8 } from "jose";
import { afterAll, describe, expect, it } from "vitest";
import { unpack } from "../../src/bundle/archive.ts";
import type { BundleVerification } from "../../src/bundle/options.ts";
import { createResumeGuard } from "../../src/index.ts";
import { createKeys, damaged, json, type KeyPair, noOpa, openWorkshop, setJson } from "./support.ts";

const workshop = openWorkshop();
afterAll(workshop.remove);

const SECRET = "a secret of more than sixty-four bytes, as RFC 7518 asks for HS512: ok";
const pairs = ["RS256", "RS512", "PS256", "PS384", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"].map(
	createKeys,
);
const [rsa = createKeys("RS256")] = pairs;
const ecdsa = pairs.find(({ algorithm }) => algorithm === "ES256") ?? rsa;

function keysOf({ publicKey: key, algorithm }: KeyPair, id = "default"): BundleVerification {
	return { keys: { [id]: { key, algorithm } } };
}

let written = 0;

/** Its guard, or rejects with why it is refused. */
async function load(bundle: Uint8Array, verification?: BundleVerification | "skip") {
	written += 1;
	const source = workshop.write(`loaded-${written}.tar.gz`, bundle);
	return createResumeGuard({ bundle: { source, ...(verification && { verification }) } });
}

function refusal(code: string, message: RegExp) {
	return { name: "ResumeGuardError", code, message: expect.stringMatching(message) };
}

describe.skipIf(noOpa)("needs OPA: a bundle that OPA has signed", () => {
	it.each(pairs)("with $algorithm is good", async (pair) => {
		const bundle = await workshop.build({ signing: pair, args: ["--revision", pair.algorithm] });
		const guard = await load(bundle, keysOf(pair));
		expect(guard.revision).toBe(pair.algorithm);
	});

	it.each(["HS256", "HS384", "HS512"])("with %s is good, where that is configured", async (algorithm) => {
		const bundle = await workshop.build({ signing: { algorithm, privateKey: SECRET } });
		const verification = { keys: { default: { key: SECRET, algorithm } } };
		await expect(load(bundle, verification)).resolves.toBeDefined();
	});

	it("by `opa sign`, which names no key, is good by the one that is configured", async () => {
		const bundle = await signBySign(rsa);
		await expect(load(bundle, { ...keysOf(rsa), keyid: "default" })).resolves.toBeDefined();
		await expect(load(bundle, keysOf(rsa))).rejects.toMatchObject(
			refusal("bundle_signature_invalid", /key is none of/),
		);
	});

	it("with the `keyid` claim of before `kid`, or a scope, is good by the same", async () => {
		const claims = workshop.write("claims.json", JSON.stringify({ keyid: "old", scope: "write" }));
		const bundle = await signBySign(rsa, ["--claims-file", claims]);
		const { keys } = keysOf(rsa, "old");
		await expect(load(bundle, { keys, scope: "write" })).resolves.toBeDefined();
		const scoped = { keys: { old: { key: rsa.publicKey, scope: "write" } } };
		await expect(load(bundle, scoped)).resolves.toBeDefined();
		for (const scope of [undefined, "", "read"]) {
			const other = { keys, ...(scope !== undefined && { scope }) };
			await expect(load(bundle, other)).rejects.toMatchObject(
				refusal("bundle_signature_invalid", /another scope/),
			);
		}
		await expect(
			load(await workshop.build({ signing: rsa }), { ...keysOf(rsa), scope: "write" }),
		).rejects.toMatchObject(refusal("bundle_signature_invalid", /another scope/));
	});

	it("is good by a key as JWK, as PKCS #1 and as PKIX", async () => {
		const { createPublicKey } = await import("node:crypto");
		const key = createPublicKey(rsa.publicKey);
		const bundle = await workshop.build({ signing: rsa });
		const forms = [
			key.export({ format: "jwk" }) as object,
			key.export({ type: "pkcs1", format: "pem" }).toString(),
		];
		for (const form of forms) {
			const verification = { keys: { default: { key: form as string } } };
			await expect(load(bundle, verification)).resolves.toBeDefined();
		}
	});

	it.each<[string, string]>([
		["numbers as they are written", '{"n": [1.0, 1e2, 1E+2, -0, 0.10, 12345678901234567890, 1e400]}'],
		[
			"characters that JSON may escape",
			JSON.stringify({ s: '<&>\u2028\u2029\b\f\n\r\t\u0000\u001f\u007f"\\/é😀' }),
		],
		["characters that are escaped", '{"s": "\\u003c\\/\\u00e9\\ud83d\\ude00\\u2028"}'],
		[
			"names in the order of their code points",
			'{"\\ud83d\\ude00": 1, "\\uffee": 2, "z": 3, "é": 4, "a": 5, "": 6, "a\\u0000": 7}',
		],
		["what is nested", '{"a": [[], {}, [{}], {"b": [null, true, false, ""]}]}'],
		["a name twice", '{"a": 1, "a": 2}'],
		["names of every object", '{"__proto__": {"x": 1}, "constructor": 2, "n1": "n1", "s": "s"}'],
	])("is hashed as OPA hashes: %s", async (_, text) => {
		const bundle = await workshop.build({
			manifest: { roots: ["mcp", "other"] },
			files: { "other/data.json": text },
			signing: ecdsa,
		});
		await expect(load(bundle, keysOf(ecdsa))).resolves.toBeDefined();
		// And as it is written, which OPA's build changes.
		const loose = await signBySign(ecdsa, [], { "other/data.json": text });
		await expect(load(loose, { ...keysOf(ecdsa), keyid: "default" })).resolves.toBeDefined();
	});

	it("is good with other white space and another order of members, as in OPA", async () => {
		const bundle = await workshop.build({ signing: rsa });
		const other = await damaged(bundle, (files) => {
			const { mcp } = json(files, "data.json") as { mcp: object };
			const reversed = Object.fromEntries(Object.entries(mcp).reverse());
			files.set("data.json", Buffer.from(JSON.stringify({ mcp: reversed }, undefined, "\t")));
		});
		await expect(load(other, keysOf(rsa))).resolves.toBeDefined();
		await expect(verifyByOpa(other, rsa)).resolves.toBeDefined();
	});
});

describe.skipIf(noOpa)("needs OPA: refused is a bundle that is", () => {
	it("unsigned, where it must be signed", async () => {
		const bundle = await workshop.build();
		await expect(load(bundle, keysOf(rsa))).rejects.toMatchObject(
			refusal("bundle_unsigned", /\.signatures\.json/),
		);
		await expect(load(bundle)).resolves.toBeDefined();
	});

	it("signed, where nobody can say by whom; unless signatures are not looked at", async () => {
		const bundle = await workshop.build({ signing: rsa });
		await expect(load(bundle)).rejects.toMatchObject(refusal("bundle_signature_invalid", /no key/));
		await expect(load(bundle, "skip")).resolves.toBeDefined();
	});

	describe("tampered with", () => {
		it.each<[string, (files: Map<string, Uint8Array>) => void]>([
			["a byte of the Wasm", (files) => flip(files, "policy.wasm")],
			["the data", (files) => setJson(files, "data.json", { mcp: { resources: ["https://evil.example"] } })],
			[
				"a number's text in the data",
				(files) => edit(files, "data.json", '"clock_skew":30', '"clock_skew":30.0'),
			],
			["the manifest", (files) => edit(files, ".manifest", '"revision":"r1"', '"revision":"r2"')],
			["the Rego", (files) => flip(files, "policies/mcp/custom/custom.rego")],
			["a file more", (files) => files.set("extra.txt", Buffer.from("x"))],
			[
				"data more",
				(files) => files.set("mcp/tools/data.json", Buffer.from('{"evil": {"aud": [], "scope": []}}')),
			],
			["signatures more, in a folder", (files) => files.set("mcp/.signatures.json", Buffer.from("{}"))],
			["the Wasm less", (files) => files.delete("policy.wasm")],
			["the data less", (files) => files.delete("data.json")],
			["the manifest less", (files) => files.delete(".manifest")],
			["Rego less", (files) => files.delete("policies/mcp/custom/custom.rego")],
			[
				"a file by another name",
				(files) => rename(files, "policies/mcp/mcp.rego", "policies/mcp/other.rego"),
			],
		])("%s", async (_, change) => {
			const bundle = await workshop.build({ signing: rsa, args: ["--revision", "r1"] });
			await expect(load(bundle, keysOf(rsa))).resolves.toBeDefined();
			const tampered = await damaged(bundle, change);
			await expect(load(tampered, keysOf(rsa))).rejects.toMatchObject(
				refusal("bundle_signature_invalid", /\bfile\b/),
			);
			await expect(verifyByOpa(tampered, rsa)).rejects.toThrow();
		});
	});

	it("not what was signed: the signatures of another", async () => {
		const one = await workshop.build({ signing: rsa, args: ["--revision", "1"] });
		const other = await workshop.build({ signing: rsa, args: ["--revision", "2"] });
		const signatures = (await unpack(other)).get(".signatures.json") ?? new Uint8Array();
		const mixed = await damaged(one, (files) => void files.set(".signatures.json", signatures));
		await expect(load(mixed, keysOf(rsa))).rejects.toMatchObject(
			refusal("bundle_signature_invalid", /\.manifest/),
		);
	});

	it.each<[string, () => BundleVerification, RegExp]>([
		["another key", () => keysOf(createKeys("RS256")), /not by its key/],
		["a key by another name", () => keysOf(rsa, "other"), /key is none of/],
		[
			"a key that every object has",
			() => ({ keys: { constructor: { key: rsa.publicKey } } }),
			/key is none of/,
		],
		[
			"a key for another algorithm of its kind",
			() => ({ keys: { default: { key: rsa.publicKey, algorithm: "PS256" } } }),
			/algorithm/,
		],
		["a key of another kind", () => keysOf(ecdsa), /algorithm/],
		["an HMAC secret", () => ({ keys: { default: { key: SECRET, algorithm: "HS256" } } }), /algorithm/],
	])("by %s", async (_, verification, message) => {
		const bundle = await workshop.build({ signing: rsa });
		await expect(load(bundle, verification())).rejects.toMatchObject(
			refusal("bundle_signature_invalid", message),
		);
	});

	describe("signed with", () => {
		const files = async (): Promise<[Uint8Array, string]> => {
			const bundle = await workshop.build({ signing: rsa });
			const [token = ""] = (json(await unpack(bundle), ".signatures.json") as { signatures: string[] })
				.signatures;
			return [bundle, token];
		};
		const withToken = (bundle: Uint8Array, ...tokens: unknown[]) =>
			damaged(bundle, (files) => setJson(files, ".signatures.json", { signatures: tokens }));
		const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

		it("the public key as HMAC secret", async () => {
			const [bundle, token] = await files();
			const input = `${encode({ alg: "HS256", kid: "default" })}.${token.split(".")[1]}`;
			const mac = createHmac("sha256", rsa.publicKey).update(input).digest("base64url");
			await expect(load(await withToken(bundle, `${input}.${mac}`), keysOf(rsa))).rejects.toMatchObject(
				refusal("bundle_signature_invalid", /algorithm/),
			);
		});

		it.each(["none", "None", "RS384", "", undefined])("the algorithm %s", async (alg) => {
			const [bundle, token] = await files();
			const [, claims, signature] = token.split(".");
			const header = encode({ ...(alg !== undefined && { alg }), kid: "default" });
			for (const end of ["", signature]) {
				const other = await withToken(bundle, `${header}.${claims}.${end}`);
				await expect(load(other, keysOf(rsa))).rejects.toMatchObject({ code: "bundle_signature_invalid" });
			}
		});

		it.each<[string, (token: string) => unknown[]]>([
			["no signature", () => []],
			["two signatures", (token) => [token, token]],
			["a number", () => [1]],
			["no JWS", () => ["x"]],
			["a JWS without payload", (token) => [token.replace(/\..*\./, "..")]],
			["a signature cut off", (token) => [token.slice(0, -8)]],
			["a signature left out", (token) => [token.replace(/[^.]*$/, "")]],
		])("%s", async (_, tokens) => {
			const [bundle, token] = await files();
			const other = await withToken(bundle, ...tokens(token));
			await expect(load(other, keysOf(rsa))).rejects.toMatchObject({ code: "bundle_signature_invalid" });
			await expect(verifyByOpa(other, rsa)).rejects.toThrow();
		});

		it.each<[string, (signed: Signed) => unknown]>([
			["no files", () => ({})],
			["a file twice", ({ files: [one, ...others] }) => ({ files: [one, one, ...others] })],
			["a file that is not there", ({ files }) => ({ files: [...files, { ...files[0], name: "gone" }] })],
			["a hash of MD5", ({ files }) => ({ files: files.map((file) => ({ ...file, algorithm: "MD5" })) })],
			[
				"a hash without an algorithm",
				({ files }) => ({ files: files.map(({ name, hash }) => ({ name, hash })) }),
			],
			["an empty hash", ({ files }) => ({ files: files.map((file) => ({ ...file, hash: "" })) })],
			[
				"a hash by its start",
				({ files }) => ({ files: files.map((file) => ({ ...file, hash: file.hash.slice(0, 32) })) }),
			],
			["a scope", (signed) => ({ ...signed, scope: "write" })],
			["a scope that is no string", (signed) => ({ ...signed, scope: 1 })],
		])("the right key over %s", async (_, change) => {
			const [bundle, token] = await files();
			const signed: Signed = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
			const resigned = await new CompactSign(Buffer.from(JSON.stringify(change(signed))))
				.setProtectedHeader({ alg: "RS256", kid: "default" })
				.sign(await importPKCS8(rsa.privateKey, "RS256"));
			await expect(load(await withToken(bundle, resigned), keysOf(rsa))).rejects.toMatchObject({
				code: "bundle_signature_invalid",
			});
		});

		it("a critical extension that nobody knows", async () => {
			const [bundle, token] = await files();
			const [, claims = ""] = token.split(".");
			const resigned = await new CompactSign(Buffer.from(claims, "base64url"))
				.setProtectedHeader({ alg: "RS256", kid: "default", crit: ["x"], x: 1 })
				.sign(await importPKCS8(rsa.privateKey, "RS256"), { crit: { x: true } });
			await expect(load(await withToken(bundle, resigned), keysOf(rsa))).rejects.toMatchObject(
				refusal("bundle_signature_invalid", /not by its key/),
			);
		});

		it("another verifier's plugin", async () => {
			const [bundle, token] = await files();
			const other = await damaged(bundle, (files) =>
				setJson(files, ".signatures.json", { signatures: [token], plugin: "custom" }),
			);
			await expect(load(other, keysOf(rsa))).rejects.toMatchObject({ code: "bundle_signature_invalid" });
		});
	});
});

interface Signed {
	readonly files: { name: string; hash: string; algorithm: string }[];
}

/** Has `opa sign` sign the files of a bundle, and of these. */
async function signBySign(
	{ algorithm, privateKey }: KeyPair,
	args: readonly string[] = [],
	files: Readonly<Record<string, string>> = {},
): Promise<Uint8Array> {
	written += 1;
	const folder = workshop.path(`signed-${written}`);
	const unsigned = await workshop.build({ manifest: { roots: ["mcp", "other"] } });
	return damaged(unsigned, async (all) => {
		for (const [path, text] of Object.entries(files)) all.set(path, Buffer.from(text));
		for (const [path, content] of all) {
			mkdirSync(dirname(join(folder, path)), { recursive: true });
			writeFileSync(join(folder, path), content);
		}
		const key = workshop.write(`key-${written}.pem`, privateKey);
		await workshop.opa(
			["sign", "-b", ".", "--signing-alg", algorithm, "--signing-key", key, ...args],
			folder,
		);
		all.set(".signatures.json", readFileSync(join(folder, ".signatures.json")));
	});
}

/** Has OPA verify a bundle; rejects if it is not good. */
async function verifyByOpa(bundle: Uint8Array, { algorithm, publicKey }: KeyPair): Promise<string> {
	written += 1;
	const source = workshop.write(`verified-${written}.tar.gz`, bundle);
	const key = workshop.write(`public-${written}.pem`, publicKey);
	const verification = [
		"--verification-key",
		key,
		"--verification-key-id",
		"default",
		"--signing-alg",
		algorithm,
	];
	return workshop.opa(["build", ...verification, "--bundle", source, "-o", `again-${written}.tar.gz`]);
}

function flip(files: Map<string, Uint8Array>, path: string): void {
	const content = new Uint8Array(files.get(path) ?? []);
	const middle = Math.floor(content.length / 2);
	content[middle] = (content[middle] ?? 0) ^ 1;
	files.set(path, content);
}

function edit(files: Map<string, Uint8Array>, path: string, from: string, to: string): void {
	const text = Buffer.from(files.get(path) ?? []).toString();
	expect(text).toContain(from);
	files.set(path, Buffer.from(text.replace(from, to)));
}

function rename(files: Map<string, Uint8Array>, from: string, to: string): void {
	files.set(to, files.get(from) ?? new Uint8Array());
	files.delete(from);
}

describe("keys that are none are misuse", () => {
	it.each<[string, unknown]>([
		["none", { keys: {} }],
		["no keys", {}],
		["null", null],
		["an unknown option", { ...keysOf(rsa), exclude_files: ["*"] }],
		["an unknown option of a key", { keys: { a: { key: rsa.publicKey, alg: "RS256" } } }],
		["an id that is none of them", { ...keysOf(rsa), keyid: "other" }],
		["a scope that is no string", { ...keysOf(rsa), scope: 1 }],
		["a private key", { keys: { a: { key: rsa.privateKey } } }],
		["no PEM", { keys: { a: { key: "x" } } }],
		["a number", { keys: { a: { key: 1 } } }],
		["a key for another algorithm", { keys: { a: { key: rsa.publicKey, algorithm: "ES256" } } }],
		["a curve of another algorithm", { keys: { a: { key: ecdsa.publicKey, algorithm: "ES384" } } }],
		["an algorithm that is none", { keys: { a: { key: rsa.publicKey, algorithm: "none" } } }],
		["a public key as a secret", { keys: { a: { key: rsa.publicKey, algorithm: "HS256" } } }],
		["a short secret", { keys: { a: { key: "0123456789abcdef0123456789abcde", algorithm: "HS256" } } }],
		["a symmetric JWK", { keys: { a: { key: { kty: "oct", k: "AAAA" } } } }],
	])("%s", async (_, verification) => {
		const bundle = { source: "no/such.tar.gz", verification } as never;
		const failed = createResumeGuard({ bundle });
		await expect(failed).rejects.toThrow(TypeError);
		await expect(failed).rejects.not.toThrow(/BEGIN|0123456789abcdef/);
	});
});
