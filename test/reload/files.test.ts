import {
	copyFileSync,
	mkdirSync,
	readFileSync,
	renameSync,
	rmSync,
	symlinkSync,
	truncateSync,
	utimesSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import { compose } from "../../src/bundle/compose.ts";
import { createResumeGuard, type ResumeGuard, type ResumeGuardOptions } from "../../src/index.ts";
import { handmadePolicy } from "../handmade.ts";
import { callOf, shipped, temporaryFolder, writeData } from "./support.ts";

const WASM = "src/generated/policy.wasm";

async function watching(options: ResumeGuardOptions): Promise<{ guard: ResumeGuard; errors: string[] }> {
	const errors: string[] = [];
	const guard = await createResumeGuard({
		watch: true,
		onReloadError: ({ code }) => errors.push(code),
		...options,
	});
	onTestFinished(() => guard.close());
	return { guard, errors };
}

/** Resolves at the next revision, with the milliseconds that it took. */
function nextRevision(guard: ResumeGuard): Promise<number> {
	const start = performance.now();
	return new Promise((resolve) => {
		const stop = guard.onRevision(() => {
			stop();
			resolve(performance.now() - start);
		});
	});
}

describe("a change of the data file takes effect within a second", () => {
	it.each<[string, (path: string) => void]>([
		["written over", (path) => writeData(path, { profile: "strict" })],
		[
			"replaced by another, as editors do",
			(path) => {
				writeData(`${path}.new`, { profile: "strict" });
				renameSync(`${path}.new`, path);
			},
		],
		[
			"moved away, and written anew",
			(path) => {
				renameSync(path, `${path}~`);
				writeData(path, { profile: "strict" });
			},
		],
		[
			"with the size and the time of before",
			(path) => {
				writeData(path, { profile: "strict  ".trim(), replay: "prefix" });
				utimesSync(path, 1, 1);
			},
		],
	])("%s", async (_, change) => {
		const path = join(temporaryFolder(), "data.json");
		writeData(path, {});
		const { guard } = await watching({ data: path });
		const { revision } = guard;
		const next = nextRevision(guard);
		change(path);
		expect(await next).toBeLessThan(1000);
		expect(guard.data).toMatchObject({ ...shipped, profile: "strict", replay: expect.anything() });
		expect(guard.revision).not.toBe(revision);
		expect(guard.status()).toMatchObject({ revision: guard.revision });
	});

	test("a link that leads elsewhere, as a mounted ConfigMap", async () => {
		const folder = temporaryFolder();
		for (const [name, profile] of [
			["one", "covering"],
			["two", "strict"],
		] as const) {
			mkdirSync(join(folder, name));
			writeData(join(folder, name, "data.json"), { profile });
			// As old as each other, and of one length but for the profile.
			utimesSync(join(folder, name, "data.json"), 1, 1);
		}
		symlinkSync("one", join(folder, "..data"));
		symlinkSync(join("..data", "data.json"), join(folder, "data.json"));
		const { guard } = await watching({ data: join(folder, "data.json") });
		const next = nextRevision(guard);
		symlinkSync("two", join(folder, "..tmp"));
		renameSync(join(folder, "..tmp"), join(folder, "..data"));
		expect(await next).toBeLessThan(1000);
		expect(guard.data.profile).toBe("strict");
	});

	test("again and again", async () => {
		const path = join(temporaryFolder(), "data.json");
		writeData(path, { clock_skew: 0 });
		const { guard } = await watching({ data: path });
		for (const clock_skew of [1, 2, 3]) {
			const next = nextRevision(guard);
			writeData(path, { clock_skew });
			await next;
			expect(guard.data.clock_skew).toBe(clock_skew);
		}
	});
});

test("a policy that is written anew takes effect, and its revision is another", async () => {
	const folder = temporaryFolder();
	const policy = join(folder, "policy.wasm");
	copyFileSync(WASM, policy);
	const { guard } = await watching({ data: { resources: ["https://mcp.example.com"] }, policy });
	const { revision } = guard;
	const refusal = { outcome: "refuse", code: "undecided", drift: [], session: "keep", status: 403 };
	const next = nextRevision(guard);
	writeFileSync(policy, handmadePolicy({ answer: refusal }));
	await next;
	expect(guard.call(callOf("search"))).toEqual(refusal);
	expect(guard.revision).not.toBe(revision);
	const back = nextRevision(guard);
	copyFileSync(WASM, policy);
	await back;
	expect(guard.revision).toBe(revision);
});

describe("what is not good leaves the last good in force, and the status says why", () => {
	it.each<[string, string, (path: string) => void]>([
		["half of it", "data_invalid", (path) => truncateSync(path, readFileSync(path).length / 2)],
		["nothing of it", "data_invalid", (path) => truncateSync(path)],
		["data that break the schema", "data_invalid", (path) => writeData(path, { profile: "none" })],
		["text, which is no path", "data_invalid", (path) => writeFileSync(path, '"policies/mcp/data.json"')],
		["a file that is gone", "file_unreadable", (path) => rmSync(path)],
		[
			"a folder",
			"file_unreadable",
			(path) => {
				rmSync(path);
				mkdirSync(path);
			},
		],
	])("%s", async (_, code, damage) => {
		const folder = temporaryFolder();
		const path = join(folder, "data.json");
		writeData(path, {});
		const { guard, errors } = await watching({ data: path });
		const before = guard.status();
		expect(before).toEqual({
			revision: guard.revision,
			activatedAt: expect.any(Date),
			lastAttempt: expect.any(Date),
		});
		const decided = guard.call(callOf("search"));
		damage(path);
		await expect.poll(() => guard.status().lastError?.code).toBe(code);
		expect(guard.status()).toMatchObject({ revision: before.revision, activatedAt: before.activatedAt });
		expect(guard.status().lastAttempt.getTime()).toBeGreaterThan(before.lastAttempt.getTime());
		expect(guard.call(callOf("search"))).toEqual(decided);

		rmSync(path, { recursive: true, force: true });
		const next = nextRevision(guard);
		writeData(path, { profile: "strict" });
		await next;
		expect(guard.data.profile).toBe("strict");
		expect(guard.status().lastError).toBeUndefined();
		// Also what was there in between (it was gone for a moment) was heard once for each reason.
		expect(new Set(errors).size).toBe(errors.length);
		expect(errors).toContain(code);
	});

	it("and what was good comes back, it is so again", async () => {
		const path = join(temporaryFolder(), "data.json");
		writeData(path, {});
		const { guard } = await watching({ data: path });
		const listener = vi.fn();
		guard.onRevision(listener);
		writeFileSync(path, "{");
		await expect.poll(() => guard.status().lastError).toBeDefined();
		writeData(path, {});
		await expect.poll(() => guard.status().lastError).toBeUndefined();
		expect(listener).not.toHaveBeenCalled();
	});

	it("it says so on the console by default", async () => {
		const error = vi.spyOn(console, "error").mockImplementation(() => {});
		const path = join(temporaryFolder(), "data.json");
		writeData(path, {});
		const guard = await createResumeGuard({ data: path, watch: true });
		try {
			writeFileSync(path, '{"secret": ');
			await expect.poll(() => error.mock.calls.length).toBe(1);
			expect(String(error.mock.calls[0]?.[0])).toMatch(/^mcp-resume-guard: not reloaded, .*data_invalid/);
			expect(String(error.mock.calls[0])).not.toContain("secret");
		} finally {
			guard.close();
			error.mockRestore();
		}
	});
});

test("without watch nothing changes", async () => {
	const path = join(temporaryFolder(), "data.json");
	writeData(path, {});
	const still = await createResumeGuard({ data: path });
	const { guard } = await watching({ data: path });
	const next = nextRevision(guard);
	writeData(path, { profile: "strict" });
	await next;
	expect(still.data.profile).toBe("covering");
});

test("when it is closed nothing changes, and it decides on", async () => {
	const path = join(temporaryFolder(), "data.json");
	writeData(path, {});
	const { guard: closed } = await watching({ data: path });
	const { guard } = await watching({ data: path });
	closed.close();
	closed.close();
	const next = nextRevision(guard);
	writeData(path, { profile: "strict" });
	await next;
	expect(closed.data.profile).toBe("covering");
	expect(closed.call(callOf("search")).outcome).toBe("proceed");
});

test("a process that only watches ends", async () => {
	const path = join(temporaryFolder(), "data.json");
	writeData(path, {});
	const script = `import("./src/index.ts").then(({ createResumeGuard }) => createResumeGuard({ data: process.argv[1], watch: true })).then(({ revision }) => console.log(revision))`;
	const { execFile } = await import("node:child_process");
	const { promisify } = await import("node:util");
	const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", "-e", script, path]);
	expect(stdout).toMatch(/^sha256-/);
});

describe("misuse is a TypeError", () => {
	const data = shipped;
	it.each<[string, unknown]>([
		["nothing to watch", { data, watch: true }],
		["watch that is no boolean", { data: "policies/mcp/data.json", watch: "yes" }],
		["data beside a bundle", { data, bundle: "bundle.tar.gz" }],
		["a policy beside a bundle", { policy: WASM, bundle: "bundle.tar.gz" }],
		["neither data nor a bundle", { policy: WASM }],
		["a bundle that is nothing", { bundle: null }],
		["a bundle that is a number", { bundle: 1 }],
		["a bundle without a source", { bundle: {} }],
		["a bundle's path that is empty", { bundle: "" }],
		["an unknown option of a bundle", { bundle: { source: "x", key: "y" } }],
		["a URL that others can change on its way", { bundle: "http://bundles.example/b.tar.gz" }],
		["a URL of another kind", { bundle: new URL("ftp://bundles.example/b.tar.gz") }],
		["a URL with a password", { bundle: "https://user:s3cr3t@bundles.example/b.tar.gz" }],
		["headers for a path", { bundle: { source: "x", headers: { a: "b" } } }],
		["headers that are none", { bundle: { source: "https://bundles.example", headers: { a: "s3cr3t\nb" } } }],
		[
			"polling for a path",
			{ bundle: { source: "x", polling: { minDelaySeconds: 1, maxDelaySeconds: 2 } }, watch: true },
		],
		[
			"polling without watch",
			{ bundle: { source: "https://b.example", polling: { minDelaySeconds: 1, maxDelaySeconds: 2 } } },
		],
		[
			"polling without pause",
			{
				bundle: { source: "https://b.example", polling: { minDelaySeconds: 0, maxDelaySeconds: 2 } },
				watch: true,
			},
		],
		[
			"polling backwards",
			{
				bundle: { source: "https://b.example", polling: { minDelaySeconds: 3, maxDelaySeconds: 2 } },
				watch: true,
			},
		],
		["polling that is none", { bundle: { source: "https://b.example", polling: {} }, watch: true }],
		["a rollback without a file", { bundle: { source: "x", rollback: {} } }],
		["a rollback that is true", { bundle: { source: "x", rollback: true } }],
		["onReloadError that is no function", { data, onReloadError: "log" }],
	])("%s", async (_, options) => {
		const failed = createResumeGuard(options as ResumeGuardOptions);
		await expect(failed).rejects.toThrow(TypeError);
		await expect(failed).rejects.not.toThrow(/s3cr3t/);
	});
});

describe("a bundle's file", () => {
	const wasm = new Uint8Array(readFileSync(WASM));
	const bundleOf = (revision: string, changes: object = {}) =>
		compose({ data: { ...shipped, ...changes }, wasm, rules: [], tests: {}, revision });

	test("takes effect when it is there as a whole, and not half of it", async () => {
		const path = join(temporaryFolder(), "bundle.tar.gz");
		writeFileSync(path, await bundleOf("1"));
		const { guard, errors } = await watching({ bundle: path });
		const listener = vi.fn();
		guard.onRevision(listener);
		const second = await bundleOf("2", { profile: "strict" });
		writeFileSync(path, second.subarray(0, second.length / 2));
		await expect.poll(() => guard.status().lastError?.code).toBe("bundle_invalid");
		expect(guard).toMatchObject({ revision: "1", data: { profile: "covering" } });
		const next = nextRevision(guard);
		writeFileSync(path, second.subarray(second.length / 2), { flag: "a" });
		await next;
		expect(guard).toMatchObject({ revision: "2", data: { profile: "strict" } });
		expect(guard.status().lastError).toBeUndefined();
		expect(listener).toHaveBeenCalledOnce();
		expect(errors).toEqual(["bundle_invalid"]);
	});

	test("that is too large, or no file, is not read", async () => {
		const path = join(temporaryFolder(), "bundle.tar.gz");
		writeFileSync(path, "");
		truncateSync(path, 1 << 30);
		await expect(createResumeGuard({ bundle: path })).rejects.toMatchObject({ code: "bundle_too_large" });
		for (const none of ["no/such.tar.gz", "policies", "/dev/zero"]) {
			await expect(createResumeGuard({ bundle: none })).rejects.toMatchObject({ code: "file_unreadable" });
		}
	});

	test("by a file URL is the same", async () => {
		const path = join(temporaryFolder(), "bundle.tar.gz");
		writeFileSync(path, await bundleOf("1"));
		const guard = await createResumeGuard({ bundle: pathToFileURL(path) });
		expect(guard.revision).toBe("1");
	});

	test("that tests itself keeps no decision waiting for long", async () => {
		const path = join(temporaryFolder(), "bundle.tar.gz");
		writeFileSync(path, await bundleOf("1"));
		const { guard } = await watching({ bundle: path });
		// Each case has data of its own, which is what costs.
		const cases = Array.from({ length: 100 }, (_, i) => ({
			name: `${i}`,
			data: { clock_skew: i },
			facts: { moment: "call", ...callOf("search") },
			want: { code: "covered" },
		}));
		const tests = { many: { title: "many", cases } };
		writeFileSync(path, await compose({ data: shipped, wasm, rules: [], tests, revision: "2" }));
		const next = nextRevision(guard);
		let longest = 0;
		let isDone = false;
		void next.then(() => {
			isDone = true;
		});
		while (!isDone) {
			const start = performance.now();
			await new Promise((resolve) => setTimeout(resolve));
			longest = Math.max(longest, performance.now() - start);
		}
		expect(guard.revision).toBe("2");
		expect(longest).toBeLessThan(500);
	});
});
