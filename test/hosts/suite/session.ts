import { randomUUID } from "node:crypto";
import { createMemorySessionStore } from "mcp-resume-guard";
import { describe, expect, test } from "vitest";
import { call, clientOf, headersOf, initialize, type RawClient, told } from "../support/client.ts";
import { FETCH, run, SEARCH, type StartHost, token } from "../support/host.ts";
import { type Exchange, send } from "../support/http.ts";
import { createTestServer } from "../support/tools.ts";

const owl = call(7, "fetch", { id: "owl", gate: "turn" });

/** Everything that one may ask of a session. */
const requests: Record<string, (client: RawClient, token: string, cursor: string) => Promise<Exchange>> = {
	GET: (client, token) => client.get(token),
	"GET with a cursor": (client, token, cursor) => client.get(token, cursor),
	"POST of a call": (client, token) => client.post(token, call(8, "search", { query: "owls" })),
	"POST of a call to a tool that there is not": (client, token) => client.post(token, call(8, "nothing")),
	"POST of a call's id": (client, token) => client.post(token, owl),
	"POST of a list": (client, token) => client.post(token, { jsonrpc: "2.0", id: 8, method: "tools/list" }),
	"POST of initialize": (client, token) => client.post(token, initialize()),
	"POST of a notification": (client, token) =>
		client.post(token, { jsonrpc: "2.0", method: "notifications/roots/list_changed" }),
	"POST of a cancellation": (client, token) =>
		client.post(token, { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } }),
	"POST of an answer": (client, token) => client.post(token, { jsonrpc: "2.0", id: 0, result: {} }),
	"POST of what is no message": (client, token) => client.post(token, {}),
	DELETE: (client, token) => client.delete(token),
};

/** What each method gets, once a session has ended. */
async function statuses(client: RawClient, token: string, cursor: string): Promise<number[]> {
	const asked = [client.get(token, cursor), client.post(token, owl), client.delete(token)];
	return (await Promise.all(asked)).map(({ status }) => status);
}

/** Valid tokens that are not of who opened the session. */
const strangers = { "another subject": { sub: "mallory" }, "another client": { client_id: "other" } };

/** A response as it went over the wire, but for the time. */
async function wireOf(exchange: Exchange): Promise<string> {
	await exchange.closed;
	return exchange.bytes.toString().replace(/^date: .*$/im, "");
}

export function sessionTests(start: StartHost): void {
	describe.each(Object.entries(strangers))("%s with a leaked session id", (_, claims) => {
		test("gets what an unknown id gets, byte for byte, and the owner goes on (`keep`)", async () => {
			const host = await run(start, { data: { foreign_principal: "keep" } });
			const [owner, stranger] = [await token(), await token(claims)];
			const client = await host.open(owner);
			const posted = await client.post(owner, owl);
			await posted.count(1);
			const { cursor = "" } = posted;
			const unknown = clientOf(host.origin, randomUUID());

			for (const [name, ask] of Object.entries(requests)) {
				const asked = await ask(client, stranger, cursor);
				expect([name, asked.status]).toEqual([name, 404]);
				expect(await wireOf(asked)).toBe(await wireOf(await ask(unknown, stranger, cursor)));
			}

			host.gates.open(client.session, "turn");
			expect(await posted.closed).toBe("ended");
			expect(told(posted)).toEqual(["#1 cursor", "#2 7 = the text of document owl"]);
			expect((await client.delete(owner)).status).toBe(204);
		});

		test.each(["GET", "GET with a cursor", "POST of a call", "DELETE"])(
			"ends the session with a %s, and sees nothing of it (`end`)",
			async (name) => {
				const host = await run(start);
				const [owner, stranger] = [await token(), await token(claims)];
				const client = await host.open(owner);
				const posted = await client.post(owner, owl);
				await posted.count(1);
				const { cursor = "" } = posted;

				const refused = await requests[name]?.(client, stranger, cursor);

				expect(refused?.status).toBe(403);
				expect(refused?.headers).not.toHaveProperty("mcp-session-id");
				expect(JSON.parse((await refused?.text()) ?? "")).toEqual({
					jsonrpc: "2.0",
					error: { code: -32043, message: "Forbidden" },
					id: null,
				});
				expect(await posted.closed).toBe("cut");
				expect(await statuses(client, owner, cursor)).toEqual([404, 404, 404]);
			},
		);
	});

	test("a rotated audience ends the session: 403 without a session id, then 404", async () => {
		const host = await run(start);
		const [before, after] = [await token({ aud: "mcp://srv" }), await token({ aud: "mcp://srv/v2" })];
		const client = await host.open(before);
		const listening = await client.get(before);
		await listening.count(1);

		const refused = await client.get(after, listening.cursor);

		expect(refused.status).toBe(403);
		expect(refused.headers).not.toHaveProperty("mcp-session-id");
		expect(JSON.parse(await refused.text())).toMatchObject({
			error: {
				data: { outcome: "reinitialize", code: "binding_drift", drift: ["aud"], session: "end", deliver: 0 },
			},
		});
		expect(await listening.closed).toBe("cut");
		expect(await statuses(client, after, listening.cursor ?? "")).toEqual([404, 404, 404]);
		for (const ask of Object.values(requests)) {
			const asked = await ask(client, before, listening.cursor ?? "");
			expect(asked.status).toBe(404);
			expect(JSON.parse(await asked.text())).toEqual({
				jsonrpc: "2.0",
				error: { code: -32001, message: "Session not found" },
				id: null,
			});
		}
	});

	test("an operator who declares the two as aliases keeps the session", async () => {
		const host = await run(start, { data: { aliases: [["mcp://srv", "mcp://srv/v2"]] } });
		const client = await host.open(await token({ aud: "mcp://srv" }));

		const listening = await client.get(await token({ aud: "mcp://srv/v2" }));

		expect(listening.status).toBe(200);
	});

	test("a refreshed token goes on, narrower or not", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const refreshed = await token({ jti: "2", exp: Math.floor(Date.now() / 1000) + 900 });

		for (const [presented, name] of [
			[refreshed, "fetch"],
			[await token({ aud: SEARCH }), "search"],
			[await token({ aud: [SEARCH, FETCH] }), "fetch"],
		] as const) {
			const posted = await client.post(presented, call(7, name, { id: "owl", query: "owls", pages: 0 }));
			expect(await posted.closed).toBe("ended");
			expect(posted.status).toBe(200);
		}
	});

	test("without a token the session stays, and so it does with an expired one", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const metadata = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource"';

		for (const method of ["GET", "POST", "DELETE"]) {
			const body = method === "POST" ? { body: JSON.stringify(owl) } : {};
			const none = await send(host.origin, {
				method,
				headers: headersOf(undefined, client.session),
				...body,
			});
			expect([none.status, none.headers["www-authenticate"]]).toEqual([401, `Bearer ${metadata}`]);
			const headers = headersOf(await token({ exp: 1 }), client.session);
			const expired = await send(host.origin, { method, headers, ...body });
			expect(expired.status).toBe(401);
			expect(expired.headers["www-authenticate"]).toMatch(
				/^Bearer error="invalid_token", .*resource_metadata=/,
			);
		}
		expect((await client.get(wide)).status).toBe(200);
	});

	test("DELETE ends a session, and its streams", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const posted = await client.post(wide, owl);
		const listening = await client.get(wide);
		await Promise.all([posted.count(1), listening.count(1)]);

		const deleted = await client.delete(wide);

		expect([deleted.status, await deleted.text()]).toEqual([204, ""]);
		expect(await posted.closed).toBe("cut");
		expect(await listening.closed).toBe("cut");
		expect(await statuses(client, wide, posted.cursor ?? "")).toEqual([404, 404, 404]);
	});

	test("an operator ends the sessions of a subject", async () => {
		const host = await run(start);
		const [alice, bob] = [await token({ sub: "alice" }), await token({ sub: "bob" })];
		const [hers, his] = [await host.open(alice), await host.open(bob)];
		const posted = await hers.post(alice, owl);
		await posted.count(1);

		expect(await host.endSessions({ sub: "alice" })).toBe(1);

		expect(await posted.closed).toBe("cut");
		expect((await hers.get(alice, posted.cursor)).status).toBe(404);
		expect((await his.get(bob)).status).toBe(200);
	});

	test("a server that cannot be made leaves no session behind", async () => {
		let made = 0;
		const host = await run(start, {
			sessions: createMemorySessionStore({ sessionsPerPrincipal: 1 }),
			createServer(gates) {
				made += 1;
				if (made === 1) throw new Error("no server");
				return createTestServer(gates);
			},
		});
		const wide = await token();
		const body = JSON.stringify(initialize());

		const failed = await send(host.origin, { method: "POST", headers: headersOf(wide), body });

		expect(failed.status).toBe(500);
		expect(failed.headers).not.toHaveProperty("mcp-session-id");
		await failed.closed;
		const opened = await send(host.origin, { method: "POST", headers: headersOf(wide), body });
		expect(opened.status).toBe(200);
	});

	test("a session id is needed for all but `initialize`, which does not open one that is there", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const plain = (method: string, message?: object) =>
			send(host.origin, {
				method,
				headers: headersOf(wide),
				...(message !== undefined && { body: JSON.stringify(message) }),
			});

		for (const asked of [await plain("GET"), await plain("DELETE"), await plain("POST", owl)]) {
			expect(asked.status).toBe(400);
			expect(JSON.parse(await asked.text())).toMatchObject({ error: { data: { code: "session_required" } } });
		}
		const again = await client.post(wide, initialize());
		expect(again.status).toBe(400);
		expect((await client.get(wide)).status).toBe(200);
	});
}
