import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it, test, vi } from "vitest";
import { MAX_LABELS } from "../src/fold.ts";
import {
	createResumeGuard,
	type Decision,
	type DecisionEvent,
	type Moment,
	type PolicyFault,
	type ResumeGuardOptions,
} from "../src/index.ts";
import { handmadePolicy } from "./handmade.ts";
import { ask } from "./tables/run.ts";
import { inTemporaryFolder } from "./temporary.ts";

const WASM = "src/generated/policy.wasm";
const DATA = "policies/mcp/data.json";
const NOW = 1_796_000_000;
const MCP = "https://mcp.example.com";
const SEARCH = `${MCP}/tools/search`;
const alice = { iss: "https://as.example.com", sub: "alice", client_id: "desktop", aud: [MCP], scope: [] };
const ping = {
	now: NOW,
	request: { method: "POST", transport: "streamable-http", session: "known" },
	session: { binding: alice, transport: "streamable-http", opened_at: NOW - 60 },
	presented: { ...alice, exp: NOW + 3600 },
	rpc: "ping",
} as const;
const search = { tool: "search", aud: [SEARCH], scope: [] };
const resume = {
	...ping,
	request: { ...ping.request, method: "GET" },
	cursor: { last_event_id: "41", position: "retained" },
	pending: [{ id: "42", ...search }],
} as const;

describe("a guard is made of", () => {
	it.each<[string, () => ResumeGuardOptions | Promise<ResumeGuardOptions>]>([
		["the packaged policy, and data as a path", () => ({ data: DATA })],
		["data as an object", () => ({ data: { resources: [MCP] } })],
		["a policy as a path", () => ({ data: DATA, policy: WASM })],
		["a policy as bytes", () => ({ data: DATA, policy: new Uint8Array(readFileSync(WASM)) })],
		[
			"a policy as a Buffer, which is a part of a larger one",
			() => ({ data: DATA, policy: readFileSync(WASM) }),
		],
		["a policy as an ArrayBuffer", () => ({ data: DATA, policy: new Uint8Array(readFileSync(WASM)).buffer })],
		[
			"a policy as a module",
			async () => ({ data: DATA, policy: await WebAssembly.compile(readFileSync(WASM)) }),
		],
	])("%s", async (_, options) => {
		const guard = await createResumeGuard(await options());
		expect(guard.session(ping)).toMatchObject({ outcome: "proceed", code: "covered" });
	});
});

describe("misuse is a TypeError", () => {
	it.each<[string, unknown]>([
		["no options", undefined],
		["null", null],
		["text", DATA],
		["no data", {}],
		["data that is null", { data: null }],
		["data that is a number", { data: 1 }],
		["data that is a function", { data: () => ({}) }],
		["a policy that is a number", { data: DATA, policy: 1 }],
		["a policy that is null", { data: DATA, policy: null }],
		["a policy that is an object", { data: DATA, policy: {} }],
		["a policy that is an instance", { data: DATA, policy: [] }],
		["an onFault that is no function", { data: DATA, onFault: "log" }],
	])("%s", async (_, options) => {
		await expect(createResumeGuard(options as ResumeGuardOptions)).rejects.toThrow(TypeError);
	});
});

describe("what is no policy is refused when the guard is made", () => {
	const emptyModule = new Uint8Array([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
	const withoutDelivery = ["session", "call", "resume"].map((moment) => `mcp/${moment}/decision`);

	it.each<[string, ResumeGuardOptions["policy"], string, RegExp]>([
		["no Wasm", new Uint8Array([1, 2, 3]), "policy_invalid", /not WebAssembly/],
		["no bytes", new Uint8Array(), "policy_invalid", /not WebAssembly/],
		["Wasm that is cut off", readFileSync(WASM).subarray(0, 5000), "policy_invalid", /not WebAssembly/],
		["Wasm that is no policy", emptyModule, "policy_invalid", /cannot be loaded/],
		["another ABI", handmadePolicy({ abi: 2 }), "policy_invalid", /unsupported ABI version 2/],
		["an ABI of before opa_eval", handmadePolicy({ minorAbi: 1 }), "policy_invalid", /before 1\.2/],
		[
			"no entrypoint",
			handmadePolicy({ entrypoints: [] }),
			"policy_invalid",
			/no entrypoint mcp\/session\/decision, mcp\/call/,
		],
		[
			"one entrypoint less",
			handmadePolicy({ entrypoints: withoutDelivery }),
			"policy_invalid",
			/no entrypoint mcp\/delivery\/decision$/,
		],
		[
			"an entrypoint that every object has",
			handmadePolicy({ entrypoints: ["constructor"] }),
			"policy_invalid",
			/no entrypoint/,
		],
		["more memory than there may be", handmadePolicy({ pages: 8192 }), "policy_invalid", /cannot be loaded/],
		["a path that is not there", "no/such.wasm", "file_unreadable", /no\/such\.wasm cannot be read/],
		["a folder", "policies", "file_unreadable", /policies cannot be read/],
		["a path of something else", DATA, "policy_invalid", /not WebAssembly/],
	])("%s", async (_, policy, code, message) => {
		vi.spyOn(console, "error").mockImplementation(() => {});
		const failed = createResumeGuard({ data: DATA, ...(policy !== undefined && { policy }) });
		await expect(failed).rejects.toMatchObject({
			name: "ResumeGuardError",
			code,
			message: expect.stringMatching(message),
		});
	});
	afterEach(() => vi.restoreAllMocks());
});

describe("a policy that fails while it decides", () => {
	const refuse = { outcome: "refuse", code: "undecided", drift: [], session: "keep", status: 403 };

	it.each(["trap", "abort", "undefined", "outside", "far outside"] as const)(
		"is replaced, and the next decision stands: %s",
		async (fails) => {
			const faults: PolicyFault[] = [];
			const policy = handmadePolicy({ answer: refuse, fails, after: 2 });
			const guard = await createResumeGuard({ policy, data: DATA, onFault: (fault) => faults.push(fault) });
			const codes = Array.from({ length: 7 }, () => guard.session(ping).code);
			const [answered, failed] = ["undecided", "policy_fault"];
			expect(codes).toEqual([answered, answered, failed, answered, answered, failed, answered]);
			expect(faults.map(({ moment }) => moment)).toEqual(["session", "session"]);
		},
	);

	it("says why to onFault, and to nobody else", async () => {
		const faults: PolicyFault[] = [];
		const policy = handmadePolicy({ fails: "trap" });
		const guard = await createResumeGuard({ policy, data: DATA, onFault: (fault) => faults.push(fault) });
		expect(guard.resume(resume)).toEqual({
			outcome: "refuse",
			code: "policy_fault",
			deliver: 0,
			cursor: "41",
			drift: [],
			session: "keep",
			status: 503,
			detail: "the policy could not be evaluated",
		});
		expect(faults).toEqual([
			{
				moment: "resume",
				reason: "the policy could not be evaluated",
				cause: expect.any(WebAssembly.RuntimeError),
			},
		]);
	});

	it("says so on the console by default, without claims", async () => {
		const error = vi.spyOn(console, "error").mockImplementation(() => {});
		const guard = await createResumeGuard({ policy: handmadePolicy({ fails: "trap" }), data: DATA });
		guard.session(ping);
		expect(error).toHaveBeenCalledOnce();
		const [said] = error.mock.calls.map((call) => call.map(String).join(" "));
		expect(said).toContain("policy_fault at session");
		expect(said).not.toContain("alice");
	});
	afterEach(() => vi.restoreAllMocks());
});

describe("memory does not grow without bound", () => {
	const refuse = { outcome: "refuse", code: "undecided", drift: [], session: "keep", status: 403 };
	const decideOften = async (grows: boolean) => {
		let faults = 0;
		const policy = handmadePolicy({ answer: refuse, grows, fails: "trap", after: 1500 });
		const guard = await createResumeGuard({ policy, data: DATA, onFault: () => faults++ });
		for (let i = 0; i < 2500; i++) guard.session(ping);
		return faults;
	};

	it("an instance past its budget is replaced", async () => {
		// It would fail after 1,500 decisions; at one page each it is past 64 MiB before.
		expect(await decideOften(true)).toBe(0);
		expect(await decideOften(false)).toBe(1);
	});

	it("many decisions on large facts need no more of it than one", async () => {
		const memories: WebAssembly.Memory[] = [];
		const { Memory } = WebAssembly;
		WebAssembly.Memory = class extends Memory {
			constructor(descriptor: WebAssembly.MemoryDescriptor) {
				super(descriptor);
				memories.push(this);
			}
		};
		try {
			const guard = await createResumeGuard({ data: DATA });
			const large = { ...resume, pending: labels(400) };
			expect(guard.resume(large).outcome).toBe("proceed");
			const [size] = memories.map(({ buffer }) => buffer.byteLength);
			for (let i = 0; i < 40; i++) expect(guard.resume(large).outcome).toBe("proceed");
			expect(memories.map(({ buffer }) => buffer.byteLength)).toEqual([size]);
			expect(size).toBeLessThan(8 * 1024 * 1024);
		} finally {
			WebAssembly.Memory = Memory;
		}
	});
});

function labels(count: number) {
	return Array.from({ length: count }, (_, i) => ({
		id: `${i}`,
		tool: `search_${i}`,
		aud: [`${SEARCH}/${i}`],
		scope: [],
	}));
}

describe("a question that is none is refused, and says what is wrong", () => {
	const faults: PolicyFault[] = [];
	const guarded = createResumeGuard({ data: DATA, onFault: (fault) => faults.push(fault) });

	// Moment, what is other in the question, and the detail of the answer.
	it.each<[string, Moment, unknown, RegExp]>([
		["nothing", "session", undefined, /^\/: must be object$/],
		["null", "session", null, /^\/: must be object$/],
		["a list", "call", [], /^\/: must be object$/],
		["text", "delivery", "x", /^\/: must be object$/],
		[
			"an event without a label",
			"resume",
			{ ...resume, pending: [{ id: "42" }] },
			/^\/pending\/0: has no label/,
		],
		[
			"a later event without one",
			"resume",
			{ ...resume, pending: [...resume.pending, { id: "43" }] },
			/^\/pending\/1: has no label/,
		],
		[
			"an event without an id",
			"resume",
			{ ...resume, pending: [search] },
			/^\/pending\/0\/id: must be string/,
		],
		[
			"an open call without a label",
			"resume",
			{ ...resume, open: [{ tool: "search" }] },
			/^\/open\/0: has no label/,
		],
		["an event at delivery without a label", "delivery", { ...ping, event: {} }, /^\/event: has no label/],
		[
			"an event at delivery without aud",
			"delivery",
			{ ...ping, event: { scope: [] } },
			/^\/event: has no label/,
		],
		[
			"an event at delivery without scope",
			"delivery",
			{ ...ping, event: { aud: [] } },
			/^\/event: has no label/,
		],
		[
			"a cursor without an id",
			"resume",
			{ ...resume, cursor: { position: "retained" } },
			/^\/cursor\/last_event_id: must be string$/,
		],
		[
			"a label of a number",
			"resume",
			{ ...resume, pending: [{ id: "42", aud: [1], scope: [] }] },
			/^\/pending\/0: .*strings/,
		],
		["no subject of a call", "call", { ...ping, rpc: undefined }, /^\/: one of tool, rpc and reference/],
		["null for no session", "session", { ...ping, session: null }, /^\/session: must be object$/],
		["a list for a session", "session", { ...ping, session: [] }, /^\/session: must be object$/],
		["null for no token", "session", { ...ping, presented: null }, /^\/presented: must be object/],
		[
			"iss of the wrong type",
			"session",
			{ ...ping, presented: { ...ping.presented, iss: 1 } },
			/^\/presented\/iss: /,
		],
		[
			"a scope of the wrong type",
			"session",
			{ ...ping, presented: { ...ping.presented, scope: 1 } },
			/^\/presented\/scope: /,
		],
		[
			"an aud of the wrong type",
			"session",
			{ ...ping, presented: { ...ping.presented, aud: 1 } },
			/^\/presented\/aud: /,
		],
		[
			"a lone surrogate in a claim",
			"session",
			{ ...ping, presented: { ...ping.presented, sub: "a\ud800" } },
			/lone surrogate/,
		],
		[
			"a lone surrogate in a binding",
			"session",
			{ ...ping, session: { ...ping.session, binding: { ...alice, sub: "\udfff" } } },
			/lone surrogate/,
		],
		[
			"a lone surrogate in a scope",
			"session",
			{ ...ping, presented: { ...ping.presented, scope: "a\udc00 b" } },
			/lone surrogate/,
		],
		["a lone surrogate in a tool", "call", { ...ping, rpc: undefined, tool: "\ud83d" }, /lone surrogate/],
		[
			"a lone surrogate in an event id",
			"resume",
			{ ...resume, pending: [{ ...resume.pending[0], id: "\ud800" }] },
			/lone surrogate/,
		],
		[
			"a lone surrogate in a cursor",
			"resume",
			{ ...resume, cursor: { ...resume.cursor, last_event_id: "\ud800" } },
			/lone surrogate/,
		],
		[
			"a lone surrogate in a label",
			"delivery",
			{ ...ping, event: { aud: ["\ud800"], scope: [] } },
			/lone surrogate/,
		],
		[
			"a lone surrogate in the name of a member",
			"session",
			{ ...ping, presented: { ...ping.presented, cnf: { "\ud800": "x" } } },
			/lone surrogate/,
		],
		[
			"100,000 distinct labels",
			"resume",
			{ ...resume, pending: labels(100_000) },
			/^\/pending\/16384: more than 16384 distinct labels/,
		],
		[
			"100,000 distinct labels of open calls",
			"resume",
			{ ...resume, open: labels(100_000) },
			/^\/open\/16384: more than 16384 distinct labels/,
		],
		["now that is not a number", "session", { ...ping, now: Number.NaN }, /^\/now: /],
		["now that is infinite", "session", { ...ping, now: Number.POSITIVE_INFINITY }, /^\/now: /],
	])("%s", async (_, moment, question, detail) => {
		const guard = await guarded;
		const decision = ask(guard, moment, question);
		expect(decision).toMatchObject({
			outcome: "refuse",
			code: "invalid_facts",
			status: 400,
			session: "keep",
			detail: expect.stringMatching(detail),
			...(moment === "resume" && { deliver: 0 }),
		});
		expect(faults).toEqual([]);
	});

	it.each<[string, object, RegExp]>([
		["exp absent", { exp: undefined }, /^\/presented\/exp: /],
		["exp as text", { exp: "1796003600" }, /^\/presented\/exp: /],
		["exp that is not a number", { exp: Number.NaN }, /^\/presented\/exp: /],
		["exp that is infinite", { exp: Number.POSITIVE_INFINITY }, /^\/presented\/exp: /],
		["aud absent", { aud: undefined }, /^\/presented\/aud: missing or empty/],
		["aud empty", { aud: [] }, /^\/presented\/aud: missing or empty/],
		["aud of no characters", { aud: "" }, /^\/presented\/aud: missing or empty/],
	])("no token: %s", async (_, claims, detail) => {
		const guard = await guarded;
		for (const moment of ["session", "call", "resume", "delivery"] as const) {
			const question = {
				...resume,
				rpc: undefined,
				tool: "search",
				event: search,
				presented: { ...ping.presented, ...claims },
			};
			const request = { ...ping.request, method: moment === "resume" ? "GET" : "POST" };
			expect(ask(guard, moment, { ...question, request })).toMatchObject({
				outcome: "reauthenticate",
				code: "token_missing",
				status: 401,
				detail: expect.stringMatching(detail),
			});
		}
	});

	it.each<[string, unknown]>([
		["absent", undefined],
		["null", null],
		["a list", []],
		["text", "alice"],
	])("a record whose binding is none is the store's fault: %s", async (_, binding) => {
		const guard = await guarded;
		expect(ask(guard, "session", { ...ping, session: { ...ping.session, binding } })).toMatchObject({
			outcome: "refuse",
			code: "policy_fault",
			status: 503,
			detail: "/session/binding: must be object",
		});
		expect(faults).toEqual([expect.objectContaining({ moment: "session" })]);
		faults.length = 0;
	});

	it("the detail has no claim's value", async () => {
		const guard = await guarded;
		const secret = "s3cr3t-value";
		const claims = [
			{ exp: secret },
			{ iss: { secret } },
			{ sub: [secret] },
			{ aud: [secret, 1] },
			{ scope: { secret } },
			{ cnf: secret },
		].map((wrong) => ({ ...ping.presented, ...wrong }));
		const asked = [
			...claims.map((presented) => ({ ...ping, presented })),
			...claims.slice(1).map((binding) => ({ ...ping, session: { ...ping.session, binding } })),
		];
		for (const question of asked) {
			const decision = ask(guard, "session", question);
			expect(decision.outcome).not.toBe("proceed");
			expect(JSON.stringify(decision)).not.toContain(secret);
		}
		expect(JSON.stringify(faults)).not.toContain(secret);
		faults.length = 0;
	});
});

describe("what a question may have", () => {
	const guarded = createResumeGuard({ data: DATA });

	it("as many labels as there may be", async () => {
		const pending = labels(MAX_LABELS);
		const decision = (await guarded).resume({ ...resume, pending });
		expect(decision).toMatchObject({ outcome: "proceed", deliver: MAX_LABELS, cursor: `${MAX_LABELS - 1}` });
	});

	it("100,000 events of a few labels, interleaved", async () => {
		const tools = ["a", "b", "c", "d"];
		const pending = Array.from({ length: 100_000 }, (_, i) => ({
			id: `${i}`,
			tool: tools[i % 4] ?? "",
			aud: [SEARCH],
			scope: [],
		}));
		const decision = (await guarded).resume({ ...resume, pending });
		expect(decision).toMatchObject({ outcome: "proceed", deliver: 100_000, cursor: "99999" });
	});

	it("surrogates that are pairs, and text that only looks like half of one", async () => {
		const guard = await guarded;
		for (const sub of ["😀", "\\ud800", "\\\\ud800", "\\u{d800}", '"\\ud800']) {
			const question = { ...ping, session: { ...ping.session, binding: { ...alice, sub } } };
			const decision = guard.session({ ...question, presented: { ...ping.presented, sub } });
			expect(decision.outcome).toBe("proceed");
		}
	});

	it("no time: it is now", async () => {
		const guard = await guarded;
		const { now, ...question } = ping;
		const presented = (exp: number) => ({ ...ping.presented, exp: Date.now() / 1000 + exp });
		expect(guard.session({ ...question, presented: presented(60) }).outcome).toBe("proceed");
		expect(guard.session({ ...question, presented: presented(-60) }).code).toBe("token_expired");
	});

	it("undefined for what is absent", async () => {
		const absent = { session: undefined, presented: undefined };
		const request = { ...ping.request, session: "none" as const };
		expect(ask(await guarded, "session", { ...ping, ...absent, request })).toMatchObject({
			code: "token_missing",
		});
	});

	it("is left as it was", async () => {
		const question = structuredClone(resume);
		const frozen = deepFreeze(resume);
		(await guarded).resume(frozen);
		expect(frozen).toEqual(question);
	});
});

test("a fold that a host has made itself is as good as the events", async () => {
	const guard = await createResumeGuard({ data: DATA });
	const events = [...resume.pending, { id: "43", ...search }];
	const needs = [{ index: 0, event_id: "42", before: "41", ...search }];
	const folded = { count: 2, last: "43", needs };
	expect(guard.resume({ ...resume, pending: folded })).toEqual(guard.resume({ ...resume, pending: events }));
});

test("more labels than there may be, folded by the host, are refused too", async () => {
	const guard = await createResumeGuard({ data: DATA });
	const needs = labels(MAX_LABELS + 1).map(({ id, ...label }, index) => ({
		index,
		event_id: id,
		before: index === 0 ? "41" : `${index - 1}`,
		...label,
	}));
	const pending = { count: needs.length, last: `${MAX_LABELS}`, needs };
	expect(guard.resume({ ...resume, pending })).toMatchObject({
		code: "invalid_facts",
		detail: "/pending/needs: more than 16384 distinct labels",
	});
});

test("what a question does not say, the facts do not have", async () => {
	const heard: DecisionEvent[] = [];
	const guard = await createResumeGuard({ data: DATA, onDecision: (event) => heard.push(event) });
	const { rpc: _, ...listen } = { ...ping, request: { ...ping.request, method: "GET" } } as const;
	guard.session(listen);
	expect(heard.map(({ facts }) => facts)).toStrictEqual([{ moment: "session", ...listen }]);
});

test("two guards do not share their data", async () => {
	const [covering, strict] = await Promise.all([
		createResumeGuard({ data: DATA }),
		createResumeGuard({ data: { resources: [MCP], profile: "strict" } }),
	]);
	const narrower = { ...ping, presented: { ...ping.presented, aud: SEARCH } };
	expect(covering.session(narrower).outcome).toBe("proceed");
	expect(strict.session(narrower).code).toBe("binding_drift");
	expect(covering.session(narrower).outcome).toBe("proceed");
});

test("data that is changed after the guard was made changes nothing", async () => {
	const data = { resources: [MCP], anonymous: false };
	const guard = await createResumeGuard({ data });
	data.anonymous = true;
	data.resources.push("https://other.example.com");
	expect(guard.data).toMatchObject({ anonymous: false, resources: [MCP] });
	const { presented, session, ...question } = ping;
	const request = { ...ping.request, session: "none" as const };
	const decision: Decision = guard.session({ ...question, request, rpc: "initialize" });
	expect(decision.code).toBe("token_missing");
});

test("a policy and data of files are read once", async () => {
	const files = [
		{ path: "policy.wasm", content: readFileSync(WASM) },
		{ path: "data.json", content: JSON.stringify({ resources: [MCP] }) },
	];
	const guard = await inTemporaryFolder(files, (folder) =>
		createResumeGuard({ policy: `${folder}/policy.wasm`, data: `${folder}/data.json` }),
	);
	expect(guard.session(ping).outcome).toBe("proceed");
});

function deepFreeze<T>(value: T): T {
	if (typeof value === "object" && value !== null)
		for (const member of Object.values(value)) deepFreeze(member);
	return Object.freeze(value);
}
