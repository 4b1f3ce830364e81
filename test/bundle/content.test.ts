import { afterAll, describe, expect, it } from "vitest";
import { unpack } from "../../src/bundle/archive.ts";
import { createResumeGuard } from "../../src/index.ts";
import { type Build, damaged, ENTRYPOINTS, json, noOpa, openWorkshop, setJson } from "./support.ts";

const workshop = openWorkshop();
afterAll(workshop.remove);
let written = 0;

async function load(bundle: Uint8Array) {
	written += 1;
	return createResumeGuard({ bundle: workshop.write(`loaded-${written}.tar.gz`, bundle) });
}

async function change(build: Build, edit: (files: Map<string, Uint8Array>) => void) {
	return load(await damaged(await workshop.build(build), edit));
}

const tool = { aud: ["https://mcp.example.com/tools/extra"], scope: [] };
const shipped = { resources: ["https://mcp.example.com"], clock_skew: 30 };

describe.skipIf(noOpa)("needs OPA: a bundle's policy data", () => {
	it("is what is under mcp", async () => {
		expect((await load(await workshop.build())).data).toMatchObject(shipped);
	});

	it("is merged from the data files of folders", async () => {
		const guard = await change({}, (files) => {
			const { mcp } = json(files, "data.json") as { mcp: { tools: object } };
			const { tools, ...others } = mcp;
			setJson(files, "data.json", { mcp: others });
			setJson(files, "mcp/tools/data.json", tools);
			setJson(files, "mcp/tools/extra/data.json", tool);
		});
		expect(guard.data).toMatchObject({ ...shipped, tools: { search: {}, fetch: {}, extra: tool } });
	});

	it("is that of a folder alone", async () => {
		const guard = await change({}, (files) => {
			setJson(files, "mcp/data.json", json(files, "data.json").mcp);
			files.delete("data.json");
		});
		expect(guard.data).toMatchObject(shipped);
	});

	it("is beside that of other roots, which nobody asks here", async () => {
		const bundle = await workshop.build({
			manifest: { roots: ["mcp", "other/part"] },
			files: { "other/part/data.json": '{"x": 1}' },
		});
		expect((await load(bundle)).data).toMatchObject(shipped);
	});

	it("has the revision of the manifest, or else one of its own, by data and Wasm", async () => {
		const named = await load(await workshop.build({ args: ["--revision", "2026-12-01.3"] }));
		expect(named.revision).toBe("2026-12-01.3");
		const revisions = new Set<string>();
		const rego =
			'package mcp.custom\n\nrefusal contains {"code": "custom:x", "outcome": "refuse"} if input.tool == "x"\n';
		for (const files of [
			{},
			{ "mcp/custom/custom.rego": rego },
			{ "mcp/tools/extra/data.json": JSON.stringify(tool) },
		]) {
			revisions.add((await load(await workshop.build({ files }))).revision);
		}
		expect([...revisions].every((revision) => /^sha256-[0-9a-f]{16}$/.test(revision))).toBe(true);
		expect(revisions.size).toBe(3);
	});
});

describe.skipIf(noOpa)("needs OPA: refused is a bundle", () => {
	it.each<[string, string, RegExp, Build, (files: Map<string, Uint8Array>) => void]>([
		[
			"of another root",
			"bundle_roots_invalid",
			/none of them is mcp/,
			{},
			(files) => {
				const { wasm: _, ...manifest } = json(files, ".manifest");
				setJson(files, ".manifest", { ...manifest, roots: ["authz"] });
				setJson(files, "data.json", { authz: {} });
			},
		],
		[
			"of a part of the root",
			"bundle_roots_invalid",
			/none of them is mcp/,
			{},
			roots(["mcp/tools", "mcp/session", "mcp/call", "mcp/resume", "mcp/delivery"]),
		],
		["of a root that only begins so", "bundle_roots_invalid", /none of them is mcp/, {}, roots(["mcp2"])],
		["of roots that overlap", "bundle_roots_invalid", /overlap/, {}, roots(["mcp", "mcp/tools"])],
		["of roots that overlap, by a slash", "bundle_roots_invalid", /overlap/, {}, roots(["mcp", "/mcp/"])],
		["of no roots", "bundle_roots_invalid", /none of them is mcp/, {}, roots([])],
		[
			"with data outside of its roots",
			"bundle_roots_invalid",
			/data at \/system/,
			{},
			(files) => setJson(files, "system/log/data.json", { x: 1 }),
		],
		[
			"with data outside of its roots, by a name of every object",
			"bundle_roots_invalid",
			/data at \/__proto__/,
			{},
			(files) => setJson(files, "__proto__/data.json", { x: 1 }),
		],
		[
			"with a root data file that is no object",
			"bundle_invalid",
			/data\.json does not fit/,
			{},
			(files) => setJson(files, "data.json", []),
		],
		[
			"with data files that do not fit together",
			"bundle_invalid",
			/mcp\/clock_skew\/data\.json does not fit/,
			{},
			(files) => setJson(files, "mcp/clock_skew/data.json", 31),
		],
		[
			"with an entrypoint outside of its roots",
			"bundle_roots_invalid",
			/do not permit the entrypoint other\/x/,
			{},
			(files) => {
				const manifest = json(files, ".manifest") as { wasm: object[] };
				setJson(files, ".manifest", {
					...manifest,
					wasm: [...manifest.wasm, { entrypoint: "other/x", module: "/policy.wasm" }],
				});
			},
		],
		["without data", "data_invalid", /none under mcp/, {}, (files) => setJson(files, "data.json", {})],
		[
			"with data that breaks its schema",
			"data_invalid",
			/\/profile/,
			{},
			(files) => setJson(files, "data.json", { mcp: { resources: ["x:y"], profile: "none" } }),
		],
		[
			"with data that is a path of a file",
			"data_invalid",
			/must be object/,
			{},
			(files) => setJson(files, "data.json", { mcp: "policies/mcp/data.json" }),
		],
		[
			"with data that is not JSON",
			"bundle_invalid",
			/data\.json is not JSON/,
			{},
			(files) => files.set("data.json", Buffer.from("{mcp: 1}")),
		],
		[
			"with data that is not UTF-8",
			"bundle_invalid",
			/data\.json is not JSON/,
			{},
			(files) => files.set("data.json", Buffer.from([0x22, 0xff, 0x22])),
		],
		[
			"with data as YAML",
			"bundle_invalid",
			/YAML/,
			{},
			(files) => files.set("mcp/data.yaml", Buffer.from("profile: strict\n")),
		],
		[
			"with a manifest that is not JSON",
			"bundle_invalid",
			/\.manifest is not JSON/,
			{},
			(files) => files.set(".manifest", Buffer.from("{")),
		],
		[
			"with a manifest of another shape",
			"bundle_invalid",
			/\.manifest: \/roots/,
			{},
			(files) => setJson(files, ".manifest", { roots: "mcp" }),
		],
		[
			"with a manifest as protobuf",
			"bundle_invalid",
			/\.manifest\.pb/,
			{},
			(files) => files.set(".manifest.pb", Buffer.from([1])),
		],
		[
			"with two manifests",
			"bundle_invalid",
			/x\.manifest/,
			{},
			(files) => setJson(files, "mcp/x.manifest", {}),
		],
		["that is a delta", "bundle_invalid", /delta/, {}, (files) => setJson(files, "patch.json", { data: [] })],
		[
			"of which the metadata has what nobody knows",
			"bundle_invalid",
			/\/metadata\/mcp_resume_guard/,
			{ manifest: { roots: ["mcp"], metadata: { mcp_resume_guard: { sequense: 1 } } } },
			() => {},
		],
		["without Wasm", "policy_invalid", /no policy\.wasm/, {}, (files) => files.delete("policy.wasm")],
		[
			"that was built for Rego",
			"policy_invalid",
			/no entrypoint mcp\/session\/decision/,
			{ target: "rego" },
			() => {},
		],
		[
			"without one of the entrypoints",
			"policy_invalid",
			/no entrypoint mcp\/delivery\/decision$/,
			{},
			(files) => {
				const manifest = json(files, ".manifest") as { wasm: { entrypoint: string }[] };
				setJson(files, ".manifest", {
					...manifest,
					wasm: manifest.wasm.filter(({ entrypoint }) => !entrypoint.includes("delivery")),
				});
			},
		],
		[
			"without a manifest, and so without entrypoints",
			"policy_invalid",
			/no entrypoint/,
			{},
			(files) => files.delete(".manifest"),
		],
		[
			"that names an entrypoint twice",
			"policy_invalid",
			/twice/,
			{},
			(files) => {
				const manifest = json(files, ".manifest") as { wasm: object[] };
				setJson(files, ".manifest", { ...manifest, wasm: [...manifest.wasm, manifest.wasm[0]] });
			},
		],
		[
			"with its entrypoints in two Wasm",
			"policy_invalid",
			/more than one/,
			{},
			(files) => {
				const manifest = json(files, ".manifest") as { wasm: object[] };
				const [first, ...others] = manifest.wasm;
				files.set("other/policy.wasm", files.get("policy.wasm") ?? new Uint8Array());
				setJson(files, ".manifest", {
					...manifest,
					wasm: [{ ...first, module: "/other/policy.wasm" }, ...others],
				});
			},
		],
		[
			"with Wasm that is none",
			"policy_invalid",
			/not WebAssembly/,
			{},
			(files) => files.set("policy.wasm", Buffer.from("x")),
		],
	])("%s", async (_, code, message, build, edit) => {
		await expect(change(build, edit)).rejects.toMatchObject({
			name: "ResumeGuardError",
			code,
			message: expect.stringMatching(message),
		});
	});

	it("with Wasm that has other entrypoints than its manifest says", async () => {
		const other = await workshop.build({ entrypoints: ENTRYPOINTS.slice(0, 3), files: withoutEntrypoints() });
		const bundle = await workshop.build();
		const wasm = (await unpack(other)).get("policy.wasm") ?? new Uint8Array();
		const mixed = await damaged(bundle, (files) => void files.set("policy.wasm", wasm));
		await expect(load(mixed)).rejects.toMatchObject({
			code: "policy_invalid",
			message: "the policy has no entrypoint mcp/delivery/decision",
		});
	});
});

/** The delivery rule without the METADATA that makes it an entrypoint. */
function withoutEntrypoints(): Record<string, string> {
	return { "mcp/delivery/delivery.rego": "package mcp.delivery\n\ndecision := {}\n" };
}

function roots(roots: readonly string[]) {
	return (files: Map<string, Uint8Array>) =>
		setJson(files, ".manifest", { ...json(files, ".manifest"), roots });
}
