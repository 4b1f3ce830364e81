import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { bytesInUse } from "../collected.ts";
import { BOTH, FETCH, type Host, SEARCH, startHost } from "../e2e/support/host.ts";
import { ask, callAndDrop, initialize, openSession, toolCall } from "../e2e/support/raw.ts";
import { authorizations, bodies, type Known, textLike } from "./arbitraries.ts";
import { options, RUNS } from "./options.ts";
import { head, type RawAnswer, sendRaw } from "./raw.ts";

const SECRET = "the text of document 42";

interface Attacked {
	readonly host: Host;
	readonly port: number;
	readonly owner: string;
	readonly stranger: string;
	readonly known: Known;
}

/** A host with a session in whose log a result waits that only the owner's wide token covers. */
async function startAttacked(): Promise<Attacked> {
	// That the session lives on is what can be looked at.
	const host = await startHost({ data: { foreign_principal: "keep" } });
	const owner = await host.mint();
	const session = await openSession(host, owner);
	const cursor = await callAndDrop(host, {
		token: owner,
		session,
		tool: "fetch",
		args: { id: "42", gate: "g" },
	});
	await host.open(session, "g");
	await host.stored(({ message }) => JSON.stringify(message).includes(SECRET));
	const stranger = await host.mint({ sub: "mallory" });
	const narrow = await host.mint({ aud: SEARCH });
	const foreign = await host.mint({ aud: "https://mcp.example.com.evil.example" });
	const tokens = [stranger, narrow, foreign];
	return { host, port: Number(new URL(host.mcp).port), owner, stranger, known: { session, cursor, tokens } };
}

/** Nothing of what waits, no fault of the host's, and the owner has it all the same. */
function expectHarmless({ text, status }: RawAnswer): void {
	expect(text).not.toContain(SECRET);
	if (status !== undefined) expect(status).toBeLessThan(500);
}

async function expectWell({ host, owner, known }: Attacked): Promise<void> {
	const reply = await ask(host, {
		method: "GET",
		token: owner,
		session: known.session,
		cursor: known.cursor,
	});
	await reply.ended();
	expect(reply.text).toContain(SECRET);
	expect(host.logged.filter((line) => (JSON.parse(line) as { level: number }).level >= 50)).toEqual([]);
}

test("whatever is in the headers of a GET, it gets nothing of what waits, and the host lives", async () => {
	const attacked = await startAttacked();
	const { known, port } = attacked;
	const headers = fc.tuple(
		fc.record(
			{
				authorization: authorizations(known),
				"mcp-session-id": textLike([
					known.session,
					known.session.toUpperCase(),
					`${known.session},${known.session}`,
				]),
				"last-event-id": textLike([
					known.cursor,
					known.cursor.replace(/\d+$/, "0"),
					known.cursor.replace(/\d+$/, "99999999999999999999"),
				]),
				"mcp-protocol-version": textLike(["2025-11-25", "2025-03-26", "2026-07-28"]),
				accept: textLike(["text/event-stream", "*/*", "text/event-stream;q=0"]),
				origin: textLike(["null", "http://127.0.0.1", "https://evil.example"]),
			},
			{ requiredKeys: ["authorization", "mcp-session-id", "last-event-id"] },
		),
		fc.constantFrom("GET", "GET", "GET", "DELETE", "HEAD", "OPTIONS", "PUT"),
		fc.constantFrom(
			"/mcp",
			"/mcp",
			"/mcp?session=1",
			"/mcp/",
			"//mcp",
			"/sse",
			"/messages?sessionId=__proto__",
			"/%6dcp",
		),
	);
	await fc.assert(
		fc.asyncProperty(headers, async ([fields, method, path]) => {
			const bytes = Buffer.from(head(method, path, Object.entries(fields)), "utf8");
			expectHarmless(await sendRaw(port, bytes));
		}),
		options,
	);
	await expectWell(attacked);
}, 120_000);

test("whatever a stranger or a narrow token posts, nothing of what waits comes, and the session goes on", async () => {
	const attacked = await startAttacked();
	const { known, host } = attacked;
	const requests = fc.record({
		token: fc.constantFrom(...known.tokens),
		session: fc.option(textLike([known.session]), { nil: undefined, freq: 6 }),
		body: bodies,
		type: fc.constantFrom(
			"application/json",
			"application/json",
			"application/json",
			"text/plain",
			"application/json; charset=utf-16",
		),
	});
	await fc.assert(
		fc.asyncProperty(requests, async ({ token, session, body, type }) => {
			const headers: [string, string][] = [
				["authorization", `Bearer ${token}`],
				["accept", "application/json, text/event-stream"],
				["content-type", type],
				["content-length", String(Buffer.byteLength(body))],
				...(session === undefined ? [] : ([["mcp-session-id", session]] as [string, string][])),
			];
			expectHarmless(await sendRaw(attacked.port, Buffer.from(head("POST", "/mcp", headers) + body, "utf8")));
		}),
		options,
	);
	// What the narrow token opened is its own; what it could not touch is there.
	await expectWell(attacked);
	expect(
		(
			await ask(host, {
				token: attacked.owner,
				session: known.session,
				body: toolCall(99, "fetch", { id: "43" }),
			})
		).status,
	).toBe(200);
}, 120_000);

test("whatever the owner posts is answered without a fault, and cannot lose what waits", async () => {
	const attacked = await startAttacked();
	const { known, owner, port } = attacked;
	await fc.assert(
		fc.asyncProperty(bodies, async (body) => {
			const headers: [string, string][] = [
				["authorization", `Bearer ${owner}`],
				["accept", "application/json, text/event-stream"],
				["content-type", "application/json"],
				["mcp-session-id", known.session],
				["content-length", String(Buffer.byteLength(body))],
			];
			const { status } = await sendRaw(port, Buffer.from(head("POST", "/mcp", headers) + body, "utf8"), 150);
			if (status !== undefined) expect(status).toBeLessThan(500);
		}),
		{ ...options, numRuns: Math.ceil(RUNS / 2) },
	);
	await expectWell(attacked);
}, 120_000);

test("bytes that are no HTTP are answered 400 or not at all", async () => {
	const attacked = await startAttacked();
	const bytes = fc.oneof(
		fc.uint8Array({ minLength: 1, maxLength: 400 }).map((array) => Buffer.from(array)),
		fc
			.string({ unit: "binary", maxLength: 200 })
			.map((text) => Buffer.from(`GET /mcp HTTP/1.1\r\nhost: x\r\n${text}\r\n\r\n`)),
		fc
			.nat({ max: 40_000 })
			.map((length) => Buffer.from(head("GET", "/mcp", [["mcp-session-id", "x".repeat(length)]]))),
	);
	await fc.assert(
		fc.asyncProperty(bytes, async (buffer) => {
			const answer = await sendRaw(attacked.port, buffer, 60);
			expectHarmless(answer);
			expect(answer.status ?? 400).toBeGreaterThanOrEqual(400);
		}),
		options,
	);
	await expectWell(attacked);
}, 120_000);

test("no line of the log has a line break, a control character or a lone surrogate of a client's in it", async () => {
	const attacked = await startAttacked();
	const { host, known, owner } = attacked;
	for (const evil of [
		'\r\n{"level":60}',
		"\u2028",
		"\u0007",
		"\u001b[2J",
		"\ud800",
		"\u202e",
		"x".repeat(100_000),
	]) {
		for (const body of [
			toolCall(`x${evil}`, `tool${evil}`),
			{ jsonrpc: "2.0", id: evil, method: `m${evil}` },
		]) {
			await (await ask(host, { token: owner, session: known.session, body })).ended();
		}
	}
	for (const line of host.logged) {
		expect(line.slice(0, -1)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
		expect(line.length).toBeLessThan(4_000);
		expect(line.isWellFormed()).toBe(true);
		expect(() => JSON.parse(line)).not.toThrow();
	}
});

test("a hundred connections that are half open, or send byte by byte, keep nobody from being served", async () => {
	const { host, port, owner, known } = await startAttacked();
	const { connect } = await import("node:net");
	const sockets = Array.from({ length: 100 }, (_, index) => {
		const socket = connect(port, "127.0.0.1");
		socket.on("error", () => undefined);
		socket.write(
			index % 2 === 0
				? "GET /mcp HTTP/1.1\r\nhost: x\r\nauthorization: Bea"
				: `POST /mcp HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${owner}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{`,
		);
		return socket;
	});
	onTestFinished(() => {
		for (const socket of sockets) socket.destroy();
	});
	const began = performance.now();
	const reply = await ask(host, {
		token: owner,
		session: known.session,
		body: toolCall(2, "search", { query: "q", pages: 1 }),
	});
	await reply.ended();
	expect(reply.text).toContain("1 pages about q");
	expect(performance.now() - began).toBeLessThan(5_000);
});

test("two thousand resumes of one session at once: one has everything, nobody more than once, none is an error", async () => {
	const { host, owner, known } = await startAttacked();
	const asked = await Promise.all(
		Array.from({ length: 2_000 }, () =>
			ask(host, { method: "GET", token: owner, session: known.session, cursor: known.cursor }).catch(
				(error) => {
					// Taken over before its head was read.
					expect(error.cause?.code).toBe("ECONNRESET");
					return undefined;
				},
			),
		),
	);
	const replies = asked.filter((reply) => reply !== undefined);
	await Promise.all(replies.map((reply) => reply.ended()));
	expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
	expect(replies.some(({ text, end }) => text.includes(SECRET) && end === "clean")).toBe(true);
	for (const { text } of replies) expect(text.split(SECRET).length).toBeLessThanOrEqual(2);
	// Whoever was taken over was cut: no clean end without the result.
	for (const { text, end } of replies) if (end === "clean") expect(text).toContain(SECRET);
}, 120_000);

test("memory does not grow with what is refused", async () => {
	const { host, port, known } = await startAttacked();
	const attack = async (count: number) => {
		for (let round = 0; round < count; round += 50) {
			await Promise.all(
				Array.from({ length: 50 }, (_, index) =>
					sendRaw(
						port,
						Buffer.from(
							head("GET", "/mcp", [
								["authorization", `Bearer ${known.tokens[0]}`],
								["accept", "text/event-stream"],
								["mcp-session-id", index % 2 ? known.session : `${round}-${index}`],
								["last-event-id", `${round}.${index}.1`],
							]),
						),
					),
				),
			);
		}
	};
	await attack(200);
	const logged = host.logged as string[];
	logged.length = 0;
	const before = await bytesInUse();
	await attack(2_000);
	logged.length = 0;
	expect((await bytesInUse()) - before).toBeLessThan(8 * 1024 * 1024);
}, 60_000);

test("audiences that look alike are not the same", async () => {
	const host = await startHost();
	for (const aud of [
		BOTH.toUpperCase(),
		`${BOTH}/`,
		`${BOTH}:443`,
		"https://user@mcp.example.com",
		"https://mcp.example.com.",
		"https://mcp%2Eexample.com",
		"https://mcp.example.com/tools/../tools/fetch",
		`${FETCH}/`,
		`${FETCH}#x`,
		`${FETCH}?`,
		"https://ⓜcp.example.com",
		"https://mсp.example.com",
		"https://mcp.example.com.evil.example",
		" https://mcp.example.com",
	]) {
		const reply = await ask(host, { token: await host.mint({ aud }), body: initialize });
		expect([aud, reply.status]).toEqual([aud, 401]);
	}
});
