import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { findOpa } from "../../scripts/opa.ts";
import { unpack } from "../../src/bundle/archive.ts";
import { createResumeGuard } from "../../src/index.ts";
import { moments } from "../cli/questions.ts";
import { decide, runOn } from "../cli/support.ts";
import { createKeys, damaged, json, noOpa, openWorkshop, setJson } from "./support.ts";

const workshop = openWorkshop();
afterAll(workshop.remove);
if (!noOpa) vi.stubEnv("OPA", await findOpa());
afterAll(() => vi.unstubAllEnvs());

const custom = `package mcp.custom

refusal contains {"code": "custom:closed", "outcome": "refuse"} if input.tool == "closed"
`;
const table = (code: string) => ({
	title: "Calls",
	cases: [{ name: "a call", facts: { ...moments.call, now: 1_796_000_000 }, want: { code } }],
});
let folders = 0;

/** A policy folder with the shipped data, and these files. */
function policyFolder(files: Readonly<Record<string, string>> = {}): string {
	folders += 1;
	const folder = workshop.path(`policy-${folders}`);
	mkdirSync(join(folder, "mcp"), { recursive: true });
	cpSync("policies/mcp/data.json", join(folder, "mcp/data.json"));
	for (const [path, content] of Object.entries(files)) {
		mkdirSync(dirname(join(folder, path)), { recursive: true });
		writeFileSync(join(folder, path), content);
	}
	return folder;
}

async function build(folder: string, ...args: string[]) {
	folders += 1;
	const path = workshop.path(`built-${folders}.tar.gz`);
	const result = await runOn([], "build", folder, "-o", path, ...args);
	return { ...result, path, bytes: () => new Uint8Array(readFileSync(path)) };
}

function keyFiles(algorithm: string) {
	folders += 1;
	const keys = createKeys(algorithm);
	return {
		privateKey: workshop.write(`${folders}.pem`, keys.privateKey),
		publicKey: workshop.write(`${folders}.pub`, keys.publicKey),
		pem: keys.publicKey,
	};
}

/** Without an OPA on this machine. */
function withoutOpa(): void {
	vi.stubEnv("OPA", undefined);
	vi.stubEnv("PATH", workshop.folder);
}
afterEach(async () => {
	vi.unstubAllEnvs();
	if (!noOpa) vi.stubEnv("OPA", await findOpa());
});

describe("build", () => {
	it("makes a bundle that a guard takes, of data alone and without OPA", async () => {
		withoutOpa();
		const built = await build(policyFolder({ "tests/calls.json": JSON.stringify(table("covered")) }));
		expect(built).toMatchObject({ exitCode: 0, stderr: "" });
		expect(built.stdout).toMatch(
			/built-\d+\.tar\.gz: \d+ bytes, revision sha256-[0-9a-f]{16}, not signed, 1 decision/,
		);
		const files = await unpack(built.bytes());
		expect(json(files, "data.json").mcp).toEqual(JSON.parse(readFileSync("policies/mcp/data.json", "utf8")));
		expect(json(files, ".manifest")).toMatchObject({
			revision: expect.stringMatching(/^sha256-/),
			roots: ["mcp"],
			metadata: { mcp_resume_guard: { tests: { "calls.json": table("covered") } } },
		});
		expect(files.get("policy.wasm")).toEqual(new Uint8Array(readFileSync("src/generated/policy.wasm")));
		const guard = await createResumeGuard({ bundle: built.path });
		expect(guard.revision).toBe(json(files, ".manifest").revision);
		// It is the same as without a bundle.
		expect((await createResumeGuard({ data: "policies/mcp/data.json" })).revision).toBe(guard.revision);
	});

	it("makes the same bytes of the same folder", async () => {
		const files = {
			"tests/b.json": JSON.stringify(table("covered")),
			"tests/a.json": JSON.stringify(table("covered")),
		};
		const rsa = keyFiles("RS256");
		const [one, other] = [
			await build(policyFolder(files), "--sign", rsa.privateKey),
			await build(policyFolder(files), "--sign", rsa.privateKey),
		];
		expect(Buffer.from(one.bytes()).equals(other.bytes())).toBe(true);
	});

	it("says what it made as JSON", async () => {
		const { exitCode, stdout, path } = await build(
			policyFolder(),
			"--json",
			"--revision",
			"r1",
			"--sequence",
			"7",
		);
		expect(exitCode).toBe(0);
		expect(JSON.parse(stdout)).toEqual({
			ok: true,
			bundle: path,
			size: readFileSync(path).length,
			revision: "r1",
			sequence: 7,
			tests: [],
			signed: false,
		});
		expect((await createResumeGuard({ bundle: path })).status()).toMatchObject({
			revision: "r1",
			sequence: 7,
		});
	});

	it("of one that fails its own tables: says so with 1, and leaves what was there", async () => {
		const folder = policyFolder({ "tests/calls.json": JSON.stringify(table("tool_unmapped")) });
		for (const json of [[], ["--json"]]) {
			folders += 1;
			const path = workshop.write(`there-${folders}`, "as before");
			const { exitCode, stdout, stderr } = await runOn([], "build", folder, "-o", path, ...json);
			expect(exitCode).toBe(1);
			expect(stdout + stderr).toMatch(/calls\.json: a call \(code\)/);
			if (json.length > 0)
				expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: "bundle_tests_failed" } });
			expect(readFileSync(path, "utf8")).toBe("as before");
		}
		expect((await build(folder, "--no-tests")).exitCode).toBe(0);
		expect(readdirSync(workshop.folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
	});

	it.each<[string, () => string[], RegExp]>([
		["no folder", () => ["build", "no/such/folder"], /no\/such\/folder/],
		[
			"data that break their schema",
			() => ["build", policyFolder({ "mcp/data.json": '{"resources": []}' })],
			/\/resources/,
		],
		["a sequence that is none", () => ["build", policyFolder(), "--sequence", "1.5"], /whole number/],
		[
			"a place that is none",
			() => ["build", policyFolder(), "-o", "no/such/folder/b.tar.gz"],
			/cannot be written/,
		],
		[
			"a key that is not there",
			() => ["build", policyFolder(), "--sign", "no/such.pem"],
			/key no\/such\.pem cannot be read/,
		],
		[
			"a key that is none",
			() => ["build", policyFolder(), "--sign", workshop.write("none.pem", "s3cr3t")],
			/no private key/,
		],
		[
			"a public key",
			() => ["build", policyFolder(), "--sign", keyFiles("RS256").publicKey],
			/no private key/,
		],
		[
			"a key for another algorithm",
			() => ["build", policyFolder(), "--sign", keyFiles("ES256").privateKey, "--signing-alg", "RS256"],
			/does not fit RS256/,
		],
		[
			"a private key as a secret",
			() => ["build", policyFolder(), "--sign", keyFiles("RS256").privateKey, "--signing-alg", "HS256"],
			/no secret/,
		],
		["an algorithm without a key", () => ["build", policyFolder(), "--signing-alg", "ES256"], /need --sign/],
		["a table that is none", () => ["build", policyFolder({ "tests/x.json": "{}" })], /x\.json/],
	])("could not, for %s: 2, one line, no secret", async (_, argv, message) => {
		const args = argv();
		const output = args.includes("-o") ? [] : ["-o", workshop.path("never.tar.gz")];
		const { exitCode, stdout, stderr } = await runOn([], ...args, ...output);
		expect(exitCode).toBe(2);
		expect(stdout).toBe("");
		expect(stderr).toMatch(message);
		expect(stderr.trimEnd().split("\n")).toHaveLength(1);
		expect(stderr).not.toMatch(/BEGIN|s3cr3t/);
		expect(existsSync(workshop.path("never.tar.gz"))).toBe(false);
	});

	it("without OPA says which Rego it cannot compile", async () => {
		withoutOpa();
		const { exitCode, stderr } = await build(policyFolder({ "mcp/custom/own.rego": custom }));
		expect(exitCode).toBe(2);
		expect(stderr).toMatch(/OPA is needed to compile mcp\/custom\/own\.rego/);
	});
});

describe.skipIf(noOpa)("needs OPA: build", () => {
	it("compiles Rego of the folder's own", async () => {
		const { exitCode, path } = await build(policyFolder({ "mcp/custom/custom.rego": custom }));
		expect(exitCode).toBe(0);
		const guard = await createResumeGuard({ bundle: path });
		expect(guard.call({ ...moments.call, tool: "closed" } as never)).toMatchObject({ code: "custom:closed" });
		expect(guard.call(moments.call as never)).toMatchObject({ outcome: "proceed" });
	});

	it("names the roots of all Rego that is in it", async () => {
		const mask = 'package system.log\n\nmask contains "/input/x"\n';
		const { exitCode, path, bytes } = await build(
			policyFolder({ "system/log/mask.rego": mask, "mcp/custom/custom.rego": custom }),
		);
		expect(exitCode).toBe(0);
		expect(json(await unpack(bytes()), ".manifest")).toMatchObject({ roots: ["mcp", "system/log"] });
		await expect(workshop.opa(["build", "-b", path, "-o", "roots.tar.gz"])).resolves.toBeDefined();
	});

	it.each(["RS256", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA"])(
		"signs with %s as OPA verifies",
		async (algorithm) => {
			const { privateKey, publicKey, pem } = keyFiles(algorithm);
			const args = [
				"--sign",
				privateKey,
				"--signing-alg",
				algorithm,
				"--key-id",
				"mine",
				"--scope",
				"write",
				"--sequence",
				"3",
			];
			const folder = policyFolder({ "tests/calls.json": JSON.stringify(table("covered")) });
			const { exitCode, path, bytes } = await build(folder, ...args);
			expect(exitCode).toBe(0);
			const verifyByOpa = (key: string, file = path, scope = "write") =>
				workshop.opa([
					"build",
					...["--verification-key", key, "--verification-key-id", "mine", "--signing-alg", algorithm],
					...["--scope", scope, "--bundle", file, "-o", `opa-${algorithm}.tar.gz`],
				]);
			await expect(verifyByOpa(publicKey)).resolves.toBeDefined();
			await expect(verifyByOpa(publicKey, path, "read")).rejects.toThrow(/scope/);
			await expect(verifyByOpa(keyFiles(algorithm).publicKey)).rejects.toThrow(/verify/);
			const tampered = await damaged(bytes(), (files) => setJson(files, "data.json", { mcp: {} }));
			await expect(verifyByOpa(publicKey, workshop.write("tampered.tar.gz", tampered))).rejects.toThrow(
				/digest/,
			);

			const keys = { mine: { key: pem, algorithm, scope: "write" } };
			const guard = await createResumeGuard({ bundle: { source: path, verification: { keys } } });
			expect(guard.status()).toMatchObject({ sequence: 3 });
			// What OPA makes of it again keeps the sequence and the tables.
			const again = readFileSync(workshop.path(`opa-${algorithm}.tar.gz`));
			expect(json(await unpack(again), ".manifest").metadata).toEqual({
				mcp_resume_guard: { sequence: 3, tests: { "calls.json": table("covered") } },
			});
		},
	);

	it.each([
		["RS256", "RS256"],
		["ES256", "ES256"],
		["ES384", "ES384"],
		["EdDSA", "EdDSA"],
	])("signs with a key of %s by its usual algorithm, %s", async (kind, algorithm) => {
		const { privateKey, publicKey } = keyFiles(kind);
		const { path } = await build(policyFolder(), "--sign", privateKey);
		const verification = ["--verification-key", publicKey, "--signing-alg", algorithm];
		await expect(
			workshop.opa(["build", ...verification, "--bundle", path, "-o", "usual.tar.gz"]),
		).resolves.toBeDefined();
	});

	it("signs with a secret as OPA verifies", async () => {
		const secret = workshop.write("secret", "0123456789abcdef0123456789abcdef\n");
		const { exitCode, path } = await build(policyFolder(), "--sign", secret, "--signing-alg", "HS256");
		expect(exitCode).toBe(0);
		const verification = ["--verification-key", secret, "--signing-alg", "HS256"];
		await expect(
			workshop.opa(["build", ...verification, "--bundle", path, "-o", "hs.tar.gz"]),
		).resolves.toBeDefined();
		expect((await runOn([], "inspect", path, ...verification)).exitCode).toBe(0);
	});

	it("makes what OPA decides by as the guard does: its Rego there, its Wasm here", async () => {
		const { path, bytes } = await build(policyFolder({ "mcp/custom/custom.rego": custom }));
		const { facts, decision } = await new Promise<{ facts: unknown; decision: unknown }>((resolve) => {
			createResumeGuard({ bundle: path, onDecision: resolve }).then((guard) =>
				guard.call(moments.call as never),
			);
		});
		const input = workshop.write("input.json", JSON.stringify(facts));
		// An OPA that was built with Go's tools alone has no Wasm engine.
		const rego = await damaged(bytes(), (files) => {
			const { wasm: _, ...manifest } = json(files, ".manifest");
			setJson(files, ".manifest", manifest);
			files.delete("policy.wasm");
		});
		const answer = await workshop.opa([
			"eval",
			"--bundle",
			workshop.write("rego.tar.gz", rego),
			"--input",
			input,
			"--format",
			"raw",
			"data.mcp.call.decision",
		]);
		expect(JSON.parse(answer)).toEqual(decision);
	});
});

describe("inspect", () => {
	it("shows what is in a bundle", async () => {
		const { privateKey, publicKey } = keyFiles("ES256");
		const args = ["--sign", privateKey, "--sequence", "3", "--revision", "r\u001b[31m1"];
		const { path, bytes } = await build(
			policyFolder({ "tests/calls.json": JSON.stringify(table("covered")) }),
			...args,
		);
		const verification = ["--verification-key", publicKey, "--signing-alg", "ES256"];
		const shown = await runOn([], "inspect", path, ...verification, "--json");
		expect(shown).toMatchObject({ exitCode: 0, stderr: "" });
		const files = await unpack(bytes());
		expect(JSON.parse(shown.stdout)).toEqual({
			ok: true,
			revision: "r\u001b[31m1",
			roots: ["mcp"],
			entrypoints: ["session", "call", "resume", "delivery"].map((moment) => `mcp/${moment}/decision`),
			sequence: 3,
			tests: ["calls.json"],
			signature: { keyid: "default", algorithm: "ES256", files: files.size - 1, verified: true },
			size: {
				packed: readFileSync(path).length,
				unpacked: [...files.values()].reduce((sum, { length }) => sum + length, 0),
			},
			files: expect.arrayContaining([{ path: "policy.wasm", size: files.get("policy.wasm")?.length }]),
		});
		const text = await runOn([], "inspect", path, ...verification);
		expect(text.stdout).toMatch(/^revision {4}r\\u001b\[31m1\nsequence {4}3\n/);
		expect(text.stdout).toMatch(/\nsignature {3}good, key default, ES256, \d+ files\n/);
		expect(text.stdout).toMatch(/\na guard would take it\n$/);
		expect((await runOn([], "inspect", path)).stdout).toMatch(/\nsignature {3}not verified, key default/);
	});

	it("says with 1 that a guard would refuse it, and why", async () => {
		const { publicKey } = keyFiles("ES256");
		const { privateKey } = keyFiles("ES256");
		const verification = ["--verification-key", publicKey, "--signing-alg", "ES256"];
		const unsigned = await build(policyFolder());
		const other = await build(policyFolder(), "--sign", privateKey);
		const broken = workshop.write(
			"broken.tar.gz",
			await damaged(unsigned.bytes(), (files) => setJson(files, "data.json", { mcp: {} })),
		);
		const refused: [string[], string, RegExp][] = [
			[[unsigned.path, ...verification], "bundle_unsigned", /signature {3}none/],
			[[other.path, ...verification], "bundle_signature_invalid", /signature {3}not verified/],
			[[broken], "data_invalid", /a guard would refuse it: data_invalid: /],
		];
		for (const [args, code, shown] of refused) {
			const asJson = await runOn([], "inspect", ...args, "--json");
			expect(asJson.exitCode).toBe(1);
			expect(JSON.parse(asJson.stdout)).toMatchObject({ ok: false, refused: { code } });
			const asText = await runOn([], "inspect", ...args);
			expect(asText.exitCode).toBe(1);
			expect(asText.stdout).toMatch(shown);
		}
	});

	it.each<[string, () => string, string]>([
		["is not there", () => "no/such.tar.gz", "file_unreadable"],
		["is a folder", () => "policies", "file_unreadable"],
		["is no bundle", () => "policies/mcp/data.json", "bundle_invalid"],
	])("could not read what %s: 2", async (_, path, code) => {
		const { exitCode, stdout, stderr } = await runOn([], "inspect", path(), "--json");
		expect(exitCode).toBe(2);
		expect(JSON.parse(stdout)).toEqual({ error: { code, message: expect.any(String) } });
		expect(stderr).toMatch(/^mcp-resume-guard: .*\n$/);
	});
});

describe("decide --policy with a bundle", () => {
	it("decides by it", async () => {
		const data = JSON.parse(readFileSync("policies/mcp/data.json", "utf8"));
		const folder = policyFolder({ "mcp/data.json": JSON.stringify({ ...data, tools: {} }) });
		const { path } = await build(folder);
		expect((await decide([moments.call], "--policy", path)).answers).toMatchObject([
			{ code: "tool_unmapped" },
		]);
		expect((await decide([moments.call])).answers).toMatchObject([{ outcome: "proceed" }]);
	});

	it("takes a signed one with its key, or if it is told not to look", async () => {
		const { privateKey, publicKey } = keyFiles("RS256");
		const { path } = await build(policyFolder(), "--sign", privateKey);
		const question = [`${JSON.stringify(moments.call)}\n`];
		const refused = await runOn(question, "decide", "--policy", path);
		expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
		expect(refused.stderr).toMatch(/no key/);
		const other = keyFiles("RS256").publicKey;
		expect(await runOn(question, "decide", "--policy", path, "--verification-key", other)).toMatchObject({
			exitCode: 2,
			stdout: "",
		});
		for (const args of [["--verification-key", publicKey], ["--skip-verify"]]) {
			expect((await decide([moments.call], "--policy", path, ...args)).answers).toMatchObject([
				{ outcome: "proceed" },
			]);
		}
	});

	it("takes no data beside it", async () => {
		const { path } = await build(policyFolder());
		const { exitCode, stderr } = await runOn(
			[],
			"decide",
			"--policy",
			path,
			"--data",
			"policies/mcp/data.json",
		);
		expect(exitCode).toBe(2);
		expect(stderr).toMatch(/--data/);
	});
});
