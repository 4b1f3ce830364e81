import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createResumeGuard } from "../../src/index.ts";
import { noOpa, openWorkshop } from "./support.ts";

const workshop = openWorkshop();
afterAll(workshop.remove);
let written = 0;

function floorFile(content?: string): string {
	written += 1;
	const path = workshop.path(`floor-${written}/floor.json`);
	mkdirSync(dirname(path));
	if (content !== undefined) writeFileSync(path, content);
	return path;
}

async function bundleOf(sequence: unknown): Promise<string> {
	const metadata = sequence === undefined ? {} : { mcp_resume_guard: { sequence } };
	written += 1;
	return workshop.write(
		`${written}.tar.gz`,
		await workshop.build({ manifest: { roots: ["mcp"], metadata } }),
	);
}

async function load(sequence: unknown, floor: string) {
	return createResumeGuard({ bundle: { source: await bundleOf(sequence), rollback: { floorFile: floor } } });
}

describe.skipIf(noOpa)("needs OPA: with rollback protection", () => {
	it("a bundle may be of the sequence of the last one, or a later", async () => {
		const floor = floorFile();
		for (const sequence of [0, 0, 3, 3, 10]) {
			expect((await load(sequence, floor)).status()).toMatchObject({ sequence });
			expect(JSON.parse(readFileSync(floor, "utf8"))).toEqual({ sequence });
		}
		expect(readdirSync(dirname(floor))).toEqual(["floor.json"]);
	});

	it("an older one is refused, also after a restart, and the floor stays", async () => {
		const floor = floorFile();
		await load(7, floor);
		for (const sequence of [6, 0]) {
			await expect(load(sequence, floor)).rejects.toMatchObject({
				name: "ResumeGuardError",
				code: "bundle_outdated",
				message: `the bundle is older than it may be: its sequence is ${sequence}, and 7 was active`,
			});
		}
		expect(JSON.parse(readFileSync(floor, "utf8"))).toEqual({ sequence: 7 });
	});

	it("one without a sequence is refused", async () => {
		await expect(load(undefined, floorFile())).rejects.toMatchObject({ code: "bundle_outdated" });
	});

	it.each([-1, 1.5, "7", null, 2 ** 53])("a sequence that is none is no bundle's: %s", async (sequence) => {
		await expect(load(sequence, floorFile())).rejects.toMatchObject({ code: "bundle_invalid" });
	});

	it.each(["", "{", "7", '{"sequence": "7"}', '{"sequence": -1}'])(
		"a floor that nobody can read is no reason to start: %j",
		async (content) => {
			const floor = floorFile(content);
			await expect(load(9, floor)).rejects.toMatchObject({ code: "file_unreadable" });
			expect(readFileSync(floor, "utf8")).toBe(content);
		},
	);

	it("a floor that cannot be kept is no reason to start", async () => {
		await expect(load(9, workshop.path("no/such/folder/floor.json"))).rejects.toMatchObject({
			code: "file_unwritable",
		});
	});

	it("a bundle that is refused for something else does not raise the floor", async () => {
		const floor = floorFile();
		await load(1, floor);
		const manifest = { roots: ["mcp"], metadata: { mcp_resume_guard: { sequence: 5 } } };
		const files = { "mcp/profile/data.json": '"none"' };
		const broken = await workshop.build({
			manifest,
			files: { ...files, "mcp/data.json": '{"resources": ["x:y"]}' },
		});
		const source = workshop.write("broken.tar.gz", broken);
		await expect(
			createResumeGuard({ bundle: { source, rollback: { floorFile: floor } } }),
		).rejects.toMatchObject({
			code: "data_invalid",
		});
		expect(JSON.parse(readFileSync(floor, "utf8"))).toEqual({ sequence: 1 });
	});

	it("without it, a bundle may be of any sequence", async () => {
		for (const sequence of [7, 3, undefined]) {
			await expect(createResumeGuard({ bundle: await bundleOf(sequence) })).resolves.toBeDefined();
		}
	});

	it("a floor that is removed under a running host is still its floor", async () => {
		const floor = floorFile();
		const source = await bundleOf(7);
		const errors: string[] = [];
		const guard = await createResumeGuard({
			bundle: { source, rollback: { floorFile: floor } },
			watch: true,
			onReloadError: ({ code }) => errors.push(code),
		});
		try {
			rmSync(floor);
			writeFileSync(source, readFileSync(await bundleOf(6)));
			await expect.poll(() => guard.status().lastError?.code).toBe("bundle_outdated");
			expect(guard.status()).toMatchObject({ sequence: 7 });
			writeFileSync(source, readFileSync(await bundleOf(8)));
			await expect.poll(() => guard.status().sequence).toBe(8);
			expect(guard.status().lastError).toBeUndefined();
			expect(JSON.parse(readFileSync(floor, "utf8"))).toEqual({ sequence: 8 });
		} finally {
			guard.close();
		}
		expect(errors).toEqual(["bundle_outdated"]);
	});
});
