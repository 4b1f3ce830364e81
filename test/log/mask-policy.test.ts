import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findOpa, runOpa } from "../../scripts/opa.ts";
import type { DecisionLogProblem } from "../../src/log/index.ts";
import { applyMask } from "../../src/log/mask-rules.ts";
import { loadEntrypoint } from "../../src/policy.ts";
import { inTemporaryFolder } from "../temporary.ts";
import { type OpaServer, startOpa } from "./opa-server.ts";
import { data, eventOf, FACTS, proceeding, startGuard, startLog } from "./support.ts";

const noOpa = await findOpa().then(
	() => false,
	() => true,
);

/** What a security team would write. */
const POLICY = `package system.log

mask contains "/input/presented/exp"
mask contains "/result/status"
mask contains {"op": "upsert", "path": "/input/presented/client_id", "value": "a client"} if input.input.presented.client_id
mask contains {"op": "upsert", "path": "/input/note", "value": {"by": input.path, "label": input.labels.app}}
mask contains "/input/tool" if input.custom.code == "tool_unmapped"
`;

/** Answers with the rules that it is asked for. */
const ANY = `package system.log

mask contains rule if some rule in input.input.rules
`;

async function build(rego: string, entrypoint = "system/log/mask"): Promise<Uint8Array> {
	return inTemporaryFolder([{ path: "mask.rego", content: rego }], async (folder) => {
		await runOpa([
			"build",
			"-t",
			"wasm",
			"-e",
			entrypoint,
			"-o",
			join(folder, "b.tgz"),
			join(folder, "mask.rego"),
		]);
		execFileSync("tar", ["xzf", "b.tgz", "/policy.wasm"], { cwd: folder, stdio: "ignore" });
		return readFileSync(join(folder, "policy.wasm"));
	});
}

describe("rules of a mask", () => {
	const record = () => ({
		decision_id: "1",
		input: { a: { b: 1, c: [1, 2, 3] }, "x#y": 1, "x/y": 1, é: 1 },
		result: { code: "c" },
	});
	const cases: [string, unknown, object][] = [
		[
			"a pointer",
			["/input/a/b"],
			{ input: { ...record().input, a: { c: [1, 2, 3] } }, erased: ["/input/a/b"] },
		],
		[
			"a pointer to nothing",
			["/input/z", "/input/a/z", "/input/a/b/c", "/input/a/c/7", "/input/a/c/-1", "/input/a/c/x"],
			{},
		],
		[
			"an item of a list",
			["/input/a/c/0"],
			{ input: { ...record().input, a: { b: 1, c: [2, 3] } }, erased: ["/input/a/c/0"] },
		],
		["all of the facts", ["/input"], { input: undefined, erased: ["/input"] }],
		[
			"all of both",
			["/input", "/result"],
			{ input: undefined, result: undefined, erased: ["/input", "/result"] },
		],
		["a member below what is gone", ["/input", "/input/a"], { input: undefined, erased: ["/input"] }],
		[
			"another value",
			[{ op: "upsert", path: "/result/code", value: "x" }],
			{ result: { code: "x" }, masked: ["/result/code"] },
		],
		[
			"another value for all",
			[{ op: "upsert", path: "/result", value: 1 }],
			{ result: 1, masked: ["/result"] },
		],
		[
			"no value, which is null",
			[{ op: "upsert", path: "/result/code" }],
			{ result: { code: null }, masked: ["/result/code"] },
		],
		[
			"a new member",
			[{ op: "upsert", path: "/result/a/b", value: 1 }],
			{ result: { code: "c", a: { b: 1 } }, masked: ["/result/a/b"] },
		],
		["a new member below text", [{ op: "upsert", path: "/result/code/b", value: 1 }], {}],
		["an item beyond a list", [{ op: "upsert", path: "/input/a/c/3", value: 1 }], {}],
		[
			"an object to remove",
			[{ op: "remove", path: "/result/code" }],
			{ result: {}, erased: ["/result/code"] },
		],
		["the cache of builtins, which is not there", ["/nd_builtin_cache/x", "/nd_builtin_cache"], {}],
		[
			"a name that OPA escapes",
			["/input/é"],
			{ input: { a: record().input.a, "x#y": 1, "x/y": 1 }, erased: ["/input/%C3%A9"] },
		],
		[
			"a prototype",
			[{ op: "upsert", path: "/input/__proto__/polluted", value: 1 }],
			{ input: expect.anything(), masked: ["/input/__proto__/polluted"] },
		],
		["nothing", [], {}],
		["undefined", undefined, {}],
	];
	it.each(cases)("%s", (_, answer, changed) => {
		expect(applyMask(record(), answer)).toEqual({ ...record(), ...changed });
		expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
	});

	it("reach members whose names OPA's own do not", () => {
		const { input } = applyMask(record(), ["/input/x#y", "/input/x%2Fy", "/input/é"]);
		expect(input).toEqual({ a: record().input.a });
		expect(applyMask(record(), [{ op: "upsert", path: "/input/x#y", value: 2 }]).input).toMatchObject({
			"x#y": 2,
		});
	});

	it("do not touch what they are applied to", () => {
		const given = record();
		applyMask(given, ["/input/a/c/0", { op: "upsert", path: "/result/code", value: 1 }]);
		expect(given).toEqual(record());
	});

	it.each([
		["no list", { "/input/a": true }],
		["text", "/input"],
		["null", null],
		["false", false],
		["a number in it", [1]],
		["a list in it", [["/input"]]],
		["null in it", [null]],
		["no slash", ["input"]],
		["nothing of a path", [""]],
		["another part", ["/labels/id"]],
		["another part that looks like one", ["/inputs"]],
		["a half escape", ["/input/%2"]],
		["another op", [{ op: "replace", path: "/input", value: 1 }]],
		["no op", [{ path: "/input" }]],
		["an empty op", [{ op: "", path: "/input" }]],
		["no path", [{ op: "remove" }]],
		["a path that is none", [{ op: "remove", path: 5 }]],
		["an order that matters and is not told", ["/input/a/c/1", "/input/a/c/0"]],
		[
			"two values for one member",
			[
				{ op: "upsert", path: "/input/a", value: 2 },
				{ op: "upsert", path: "/input/a", value: 1 },
			],
		],
	])("are refused as a whole where one is no good: %s", (_, answer) => {
		expect(() => applyMask(record(), answer)).toThrow(Error);
		if (Array.isArray(answer)) expect(() => applyMask(record(), ["/input/a/b", ...answer])).toThrow(Error);
	});
});

describe.skipIf(noOpa)("needs OPA: a mask that is policy", () => {
	let any: (record: string) => unknown;
	let opa: OpaServer;
	beforeAll(async () => {
		any = await loadEntrypoint(await build(ANY), "system/log/mask");
		opa = await startOpa(["policies"]);
		await opa.put("/v1/policies/mask", "text/plain", ANY);
		await opa.put("/v1/policies/t", "text/plain", "package t\n\ndecision := input.answer\n");
	}, 60_000);
	afterAll(() => opa.close());

	/** What OPA logs, and what we do, of the same event under the same mask. */
	async function both(input: Record<string, unknown>) {
		const theirs = await opa.decide("t/decision", input);
		const event = { input, ...(input.answer !== undefined && { result: input.answer }) };
		let ours: ReturnType<typeof applyMask> | Error;
		try {
			ours = applyMask(event, any(JSON.stringify(event)));
		} catch (error) {
			ours = error as Error;
		}
		return { theirs, ours };
	}
	const partsOf = ({ input, result, erased, masked }: Record<string, unknown>) => ({
		input,
		result,
		erased: erased ?? [],
		masked: masked ?? [],
	});

	it("masks as OPA itself does, whatever the rules", async () => {
		const key = fc.constantFrom("a", "b", "0", "1", "x.y");
		const { node } = fc.letrec((tie) => ({
			node: fc.oneof(
				{ depthSize: "small" },
				fc.constantFrom(1, "text", true),
				fc.array(tie("node"), { maxLength: 3 }),
				fc.dictionary(key, tie("node"), { maxKeys: 3, noNullPrototype: true }),
			),
		}));
		const segments = fc.array(fc.oneof(key, fc.constantFrom("", "+1", "01", "-", "é", "%41", "a b")), {
			maxLength: 4,
		});
		const path = fc
			.tuple(fc.constantFrom("input/doc", "input/doc", "result", "input", "nd_builtin_cache"), segments)
			.map(([part, rest]) => `/${[part, ...rest].join("/")}`);
		const rule = fc.oneof(
			path,
			fc.record({ op: fc.constant("remove"), path }),
			fc.record({ op: fc.constant("upsert"), path, value: node }),
		);
		let compared = 0;
		await fc.assert(
			fc.asyncProperty(
				node,
				node,
				fc.uniqueArray(rule, { maxLength: 4, selector: (one) => JSON.stringify(one) }),
				async (doc, answer, rules) => {
					const { theirs, ours } = await both({ doc, answer, rules });
					expect(theirs).toBeDefined();
					// Rules that are in each other's way are no answer to us.
					if (ours instanceof Error) return;
					compared += 1;
					expect(partsOf(ours as Record<string, unknown>)).toEqual(partsOf(theirs ?? {}));
				},
			),
			{ numRuns: 400 },
		);
		expect(compared).toBeGreaterThan(300);
	}, 60_000);

	it.each([
		["a number", [1]],
		["no slash", ["input"]],
		["nothing of a path", [""]],
		["another part", ["/labels/id"]],
		["a half escape", ["/input/%2"]],
		["another op", [{ op: "replace", path: "/input", value: 1 }]],
		["no op", [{ path: "/input" }]],
		["no path", [{ op: "remove" }]],
	])("refuses what OPA refuses: %s", async (_, rules) => {
		const { theirs, ours } = await both({ rules, answer: 1 });
		expect(theirs).toBeUndefined();
		expect(ours).toBeInstanceOf(Error);
	});

	it("is given the record, and has the last word on it", async () => {
		const mask = await build(POLICY);
		const { log, records } = await startLog({ mask, labels: { app: "mcp" } });
		log.record(eventOf());
		log.record(proceeding());
		const [refused, proceeded] = await records();
		expect(refused).toMatchObject({
			input: { presented: { client_id: "a client" }, note: { by: "mcp/call/decision", label: "mcp" } },
			erased: ["/input/presented/exp", "/input/tool", "/result/status"],
			masked: ["/input/presented/sub", "/input/note", "/input/presented/client_id"],
			custom: { input: "partial" },
		});
		expect(refused?.input).not.toHaveProperty("tool");
		expect(refused?.result).not.toHaveProperty("status");
		expect(proceeded?.input).toMatchObject({ tool: "search" });
	});

	it("gives what OPA gives, where OPA decides on the same facts under the same policies", async () => {
		const mask = await build(
			POLICY.replaceAll("input.labels.app", '"mcp"').replace("input.custom.code", "input.result.code"),
		);
		const unmasked = await startLog();
		const masked = await startLog({ mask });
		await opa.put(
			"/v1/policies/mask",
			"text/plain",
			POLICY.replaceAll("input.labels.app", '"mcp"').replace("input.custom.code", "input.result.code"),
		);
		await opa.put("/v1/data/mcp", "application/json", JSON.stringify(data)).catch(() => {});
		try {
			const { guard, heard } = await startGuard(data);
			const { now, request, presented } = FACTS;
			for (const tool of ["search", "nobody's"]) guard.call({ now, request, presented, tool });
			for (const event of heard) {
				unmasked.log.record(event);
				masked.log.record(event);
			}
			const [before, ours] = [await unmasked.records(), await masked.records()];
			expect(ours).toHaveLength(2);
			for (const [index, { input }] of before.entries()) {
				const theirs = await opa.decide("mcp/call/decision", input);
				const { path, result } = ours[index] ?? {};
				expect(theirs).toMatchObject({ path, result });
				expect(theirs?.input).toEqual(ours[index]?.input);
				expect(theirs?.erased).toEqual(ours[index]?.erased);
			}
		} finally {
			await opa.put("/v1/policies/mask", "text/plain", ANY);
		}
	});

	it("changes nothing of `whole` where it leaves the facts alone", async () => {
		const { log, records } = await startLog({
			mask: await build('package system.log\n\nmask contains "/result/status"\n'),
		});
		log.record(eventOf());
		expect(await records()).toMatchObject([{ erased: ["/result/status"], custom: { input: "whole" } }]);
	});

	it("finds its data", async () => {
		const mask = await build("package system.log\n\nmask contains path if some path in data.secret.paths\n");
		const { log, records } = await startLog({ mask, maskData: { secret: { paths: ["/input/tool"] } } });
		log.record(eventOf());
		expect(await records()).toMatchObject([{ erased: ["/input/tool"] }]);
	});

	it.each([
		["an answer that is none", 'package system.log\n\nmask := "/input"\n'],
		["a path to what it may not change", 'package system.log\n\nmask contains "/labels/id"\n'],
		[
			"two values for one member",
			'package system.log\n\nmask := [{"op": "upsert", "path": "/input/a", "value": v} | some v in [3, 2, 1]]\n',
		],
		["a builtin that Wasm lacks", 'package system.log\n\nmask contains "/input/x" if time.now_ns() > 0\n'],
		[
			"a rule that conflicts",
			'package system.log\n\nmask := ["/input/x"] if input.path\nmask := ["/input/y"] if input.input\n',
		],
	])("leaves a record without facts when it fails: %s", async (_, rego) => {
		const problems: DecisionLogProblem[] = [];
		const { log, records } = await startLog({
			mask: await build(rego),
			onProblem: (problem) => void problems.push(problem),
		});
		for (let i = 0; i < 3; i++) log.record(eventOf());
		const written = await records();
		expect(written).toHaveLength(3);
		for (const record of written) {
			expect(record).toMatchObject({
				result: { outcome: "refuse", code: "tool_unmapped" },
				revision: "r1",
				custom: { moment: "call", input: "none", mask_error: true },
			});
			expect(record).not.toHaveProperty("input");
		}
		expect(log.stats().maskErrors).toBe(3);
		expect(problems).toMatchObject([{ kind: "masked" }]);
	});

	it("is no mask without its entrypoint", async () => {
		const mask = await build("package other\n\nmask := []\n", "other/mask");
		await expect(startLog({ mask })).rejects.toMatchObject({ code: "policy_invalid" });
		await expect(startLog({ mask: "/no/such/file.wasm" })).rejects.toMatchObject({ code: "file_unreadable" });
	});
});
