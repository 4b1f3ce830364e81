import { expect, test } from "vitest";
import type { Binding } from "../../src/generated/types.ts";
import { sessionKey } from "../../src/sessions/key.ts";
import type { SessionLimits } from "../../src/sessions/memory.ts";
import type { SessionKey, SessionMatch, SessionRecord, SessionStore } from "../../src/sessions/store.ts";

/** A store to test, empty, and how time passes for it. */
export interface SessionHarness {
	readonly store: SessionStore;
	advance(seconds: number): Promise<void>;
}

type Limits = Partial<Pick<SessionLimits, "sessions" | "sessionsPerPrincipal" | "idle">>;

export const ALICE: Binding = {
	iss: "https://as.example.com",
	sub: "alice",
	client_id: "cli",
	aud: ["https://mcp.example.com"],
	scope: [],
};
export const ANONYMOUS: Binding = { anonymous: true };

export function record(id: string, binding: Binding = ALICE): SessionRecord {
	return { key: sessionKey(id), binding, transport: "streamable-http", opened_at: 1_796_000_000 };
}

/** Resolves with the warning of the process that a listener's error becomes. */
export function warned(message: string): Promise<Error> {
	return new Promise((resolve) => {
		process.on("warning", function listen(warning) {
			if (warning.message !== message) return;
			process.off("warning", listen);
			resolve(warning);
		});
	});
}

function heard(store: SessionStore): SessionKey[] {
	const keys: SessionKey[] = [];
	store.onEnd((key) => keys.push(key));
	return keys;
}

/** What every session store has to do. */
export function sessionStoreSuite(create: (limits?: Limits) => Promise<SessionHarness>): void {
	test("a session that was opened is found", async () => {
		const { store } = await create();
		expect(await store.open(record("a"))).toBe("opened");
		expect(await store.find(sessionKey("a"))).toEqual(record("a"));
		expect(await store.find(sessionKey("b"))).toBeUndefined();
	});

	test("a key in use is not opened again, and its record stays", async () => {
		const { store } = await create();
		await store.open(record("a"));
		expect(await store.open(record("a", { ...ALICE, sub: "mallory" }))).toBe("exists");
		expect((await store.find(sessionKey("a")))?.binding.sub).toBe("alice");
	});

	test("a session that has ended is not found, does not end twice and is never opened again", async () => {
		const { store } = await create();
		const keys = heard(store);
		await store.open(record("a"));
		expect(await store.end(sessionKey("a"))).toBe(true);
		expect(keys).toEqual([sessionKey("a")]);
		expect(await store.find(sessionKey("a"))).toBeUndefined();
		expect(await store.end(sessionKey("a"))).toBe(false);
		expect(await store.open(record("a"))).toBe("exists");
		expect(keys).toEqual([sessionKey("a")]);
	});

	test("ending what was never opened ends nothing", async () => {
		const { store } = await create();
		const keys = heard(store);
		expect(await store.end(sessionKey("a"))).toBe(false);
		expect(keys).toEqual([]);
		expect(await store.open(record("a"))).toBe("opened");
	});

	test("hostile keys are keys", async () => {
		const { store } = await create();
		for (const key of ["__proto__", "constructor", ""]) {
			expect(await store.find(key)).toBeUndefined();
			expect(await store.open({ ...record("a"), key })).toBe("opened");
			expect(await store.repeated(key, "__proto__", "x", 60)).toBe(false);
			expect(await store.repeated(key, "__proto__", "x", 60)).toBe(true);
			expect(await store.end(key)).toBe(true);
		}
	});

	test("a session over the limit in all is refused, and ends no other", async () => {
		const { store } = await create({ sessions: 2 });
		const keys = heard(store);
		await store.open(record("a"));
		await store.open(record("b", { ...ALICE, sub: "bob" }));
		const third = record("c", { ...ALICE, sub: "carol" });
		expect(await store.open(third)).toBe("quota_exceeded");
		expect(keys).toEqual([]);
		expect(await store.find(sessionKey("a"))).toBeDefined();
		expect(await store.find(sessionKey("b"))).toBeDefined();
		await store.end(sessionKey("a"));
		expect(await store.open(third)).toBe("opened");
	});

	const others: [string, Binding][] = [
		["issuer", { ...ALICE, iss: "https://other.example.com" }],
		["subject", { ...ALICE, sub: "bob" }],
		["client", { ...ALICE, client_id: "web" }],
		["client, absent", { iss: "https://as.example.com", sub: "alice", aud: ["https://mcp.example.com"] }],
		["subject that looks like a separator", { ...ALICE, sub: 'alice","cli' }],
		["way in: anonymous", ANONYMOUS],
		["subject called anonymous", { ...ALICE, sub: "anonymous" }],
	];
	test.each(others)("a principal at its limit is refused, one of another %s is not", async (_, other) => {
		const { store } = await create({ sessionsPerPrincipal: 2 });
		await store.open(record("a"));
		await store.open(record("b", { ...ALICE, aud: ["https://mcp.example.com/tools/search"], scope: ["x"] }));
		expect(await store.open(record("c"))).toBe("quota_exceeded");
		expect(await store.open(record("d", other))).toBe("opened");
		await store.end(sessionKey("b"));
		expect(await store.open(record("c"))).toBe("opened");
	});

	test("anonymous sessions share one limit", async () => {
		const { store } = await create({ sessionsPerPrincipal: 2 });
		await store.open(record("a", ANONYMOUS));
		await store.open(record("b", ANONYMOUS));
		expect(await store.open(record("c", ANONYMOUS))).toBe("quota_exceeded");
		expect(await store.open(record("d"))).toBe("opened");
	});

	test("an idle session ends by itself: listeners hear of it, its place is free, its key stays used", async () => {
		const { store, advance } = await create({ idle: 2, sessionsPerPrincipal: 2 });
		const keys = heard(store);
		await store.open(record("a"));
		await store.open(record("b"));
		await advance(3);
		expect(keys.toSorted()).toEqual([sessionKey("a"), sessionKey("b")].toSorted());
		expect(await store.find(sessionKey("a"))).toBeUndefined();
		expect(await store.end(sessionKey("a"))).toBe(false);
		expect(await store.open(record("a"))).toBe("exists");
		expect(await store.open(record("c"))).toBe("opened");
		expect(await store.open(record("d"))).toBe("opened");
	});

	test("the only session there is ends by itself too", async () => {
		const { store, advance } = await create({ idle: 2 });
		const keys = heard(store);
		await store.open(record("a"));
		await advance(3);
		expect(keys).toEqual([sessionKey("a")]);
	});

	test("use keeps a session, an attempt to open it again does not", async () => {
		const { store, advance } = await create({ idle: 4 });
		const keys = heard(store);
		await store.open(record("used"));
		await store.open(record("tried"));
		await advance(3);
		await store.find(sessionKey("used"));
		await store.open(record("tried"));
		await advance(3);
		expect(keys).toEqual([sessionKey("tried")]);
		expect(await store.find(sessionKey("used"))).toBeDefined();
		await advance(5);
		expect(keys).toEqual([sessionKey("tried"), sessionKey("used")]);
	});

	const matches: [SessionMatch, string[]][] = [
		[{ iss: "https://as.example.com" }, ["alice-cli", "alice-web", "bob-cli"]],
		[{ sub: "alice" }, ["alice-cli", "alice-web", "alice-elsewhere"]],
		[{ client_id: "cli" }, ["alice-cli", "bob-cli"]],
		[{ iss: "https://as.example.com", sub: "alice" }, ["alice-cli", "alice-web"]],
		[{ iss: "https://as.example.com", sub: "alice", client_id: "web" }, ["alice-web"]],
		[{ sub: "nobody" }, []],
		[{ sub: "" }, []],
		[{ sub: "undefined" }, []],
	];
	test.each(matches)("endMatching %j ends those sessions and no other", async (match, ids) => {
		const { store } = await create();
		const keys = heard(store);
		const { client_id: _, ...elsewhere } = { ...ALICE, iss: "https://other.example.com" };
		const all = {
			"alice-cli": ALICE,
			"alice-web": { ...ALICE, client_id: "web" },
			"bob-cli": { ...ALICE, sub: "bob" },
			"alice-elsewhere": elsewhere,
			anonymous: ANONYMOUS,
		};
		for (const [id, binding] of Object.entries(all)) await store.open(record(id, binding));
		const ended = await store.endMatching(match);
		expect(ended.toSorted()).toEqual(ids.map(sessionKey).toSorted());
		expect(keys.toSorted()).toEqual(ended.toSorted());
		for (const id of Object.keys(all)) {
			expect((await store.find(sessionKey(id))) !== undefined, id).toBe(!ids.includes(id));
		}
	});

	const misuse: [string, unknown][] = [
		["no claim", {}],
		["an undefined claim", { sub: undefined }],
		["a misspelt claim beside a good one", { iss: "https://as.example.com", Sub: "alice" }],
		["a claim that is no identity", { aud: "https://mcp.example.com" }],
		["a claim of the wrong type", { sub: 7 }],
		["an anonymous match", { anonymous: true }],
	];
	test.each(misuse)("endMatching with %s is misuse, and ends nothing", async (_, match) => {
		const { store } = await create();
		const keys = heard(store);
		await store.open(record("a"));
		await store.open(record("b", ANONYMOUS));
		await expect(store.endMatching(match as SessionMatch)).rejects.toThrow(TypeError);
		expect(keys).toEqual([]);
	});

	test("a slot holds one value for each stream", async () => {
		const { store } = await create();
		const key = sessionKey("a");
		await store.open(record("a"));
		expect(await store.repeated(key, "s1", "x", 60)).toBe(false);
		expect(await store.repeated(key, "s1", "x", 60)).toBe(true);
		expect(await store.repeated(key, "s2", "x", 60)).toBe(false);
		expect(await store.repeated(key, "s1", "y", 60)).toBe(false);
		expect(await store.repeated(key, "s1", "y", 60)).toBe(true);
		expect(await store.repeated(key, "s1", "x", 60)).toBe(false);
	});

	test("a slot is empty again after its time, which being asked does not extend", async () => {
		const { store, advance } = await create();
		const key = sessionKey("a");
		await store.open(record("a"));
		await store.repeated(key, "s", "x", 4);
		await advance(3);
		expect(await store.repeated(key, "s", "x", 4)).toBe(true);
		await advance(2);
		expect(await store.repeated(key, "s", "x", 4)).toBe(false);
	});

	test("slots are a session's own, and there are none without a session", async () => {
		const { store } = await create();
		await store.open(record("a"));
		await store.open(record("b"));
		await store.repeated(sessionKey("a"), "s", "x", 60);
		expect(await store.repeated(sessionKey("b"), "s", "x", 60)).toBe(false);
		await store.end(sessionKey("a"));
		for (const id of ["a", "never"]) {
			expect(await store.repeated(sessionKey(id), "s", "x", 60)).toBe(false);
			expect(await store.repeated(sessionKey(id), "s", "x", 60)).toBe(false);
		}
	});

	test("listeners may leave while they are told, throw, listen twice, and end further sessions", async () => {
		const { store } = await create();
		const calls: string[] = [];
		const warning = warned("listener failed");
		const stopFirst = store.onEnd(() => {
			calls.push("first");
			stopFirst();
			stopThird();
		});
		store.onEnd(() => {
			throw new Error("listener failed");
		});
		const stopThird = store.onEnd(() => calls.push("third"));
		const last = (key: SessionKey) => {
			calls.push(key === sessionKey("a") ? "last a" : "last b");
			void store.end(sessionKey("b"));
		};
		store.onEnd(last);
		const stopAgain = store.onEnd(last);
		stopAgain();
		await store.open(record("a"));
		await store.open(record("b"));
		expect(await store.end(sessionKey("a"))).toBe(true);
		expect(calls).toEqual(["first", "last a", "last b"]);
		await warning;
		expect(await store.find(sessionKey("b"))).toBeUndefined();
	});
}
