import { describe, expect, test } from "vitest";
import { call, headersOf, told } from "../support/client.ts";
import { run, SERVER, type StartHost, token } from "../support/host.ts";
import { type Exchange, send } from "../support/http.ts";

const MIB = 1024 * 1024;
const ping = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
const wellKnown = "/.well-known/oauth-protected-resource";
const app = "https://app.example";

/** Status, and the code and message of the JSON-RPC error. */
async function errorOf(exchange: Exchange): Promise<unknown[]> {
	const { error } = JSON.parse(await exchange.text());
	return [exchange.status, error.code, error.message];
}

export function httpTests(start: StartHost): void {
	test("tells a tool whose call it is", async () => {
		const host = await run(start);
		const exp = Math.floor(Date.now() / 1000) + 600;
		const scoped = await token({ scope: "read write", exp });
		const client = await host.open(scoped);

		const posted = await client.post(scoped, call(7, "whoami"));
		await posted.closed;

		const { result } = JSON.parse(posted.events.at(-1)?.data ?? "");
		expect(JSON.parse(result.content[0].text)).toMatchObject({
			clientId: "app",
			scopes: ["read", "write"],
			expiresAt: exp,
			extra: { claims: { iss: "https://as.example", sub: "alice", aud: SERVER, client_id: "app" } },
		});
	});

	test("serves the protected-resource metadata to anyone", async () => {
		const host = await run(start);

		const served = await send(host.origin, { method: "GET", path: wellKnown, headers: { origin: app } });

		expect(served.status).toBe(200);
		expect(served.headers).toMatchObject({ "access-control-allow-origin": "*" });
		expect(served.headers["content-type"]).toMatch(/^application\/json/);
		expect(JSON.parse(await served.text())).toEqual({
			resource: SERVER,
			authorization_servers: ["https://as.example"],
			bearer_methods_supported: ["header"],
		});
		expect((await send(host.origin, { method: "GET", path: "/elsewhere" })).status).toBe(404);
	});

	test("serves the metadata of a resource with a path at its own place, too", async () => {
		const resource = `${SERVER}/mcp`;
		const host = await run(start, { data: { resources: [resource], coverage: {} } });

		for (const path of [wellKnown, `${wellKnown}/mcp`]) {
			const served = await send(host.origin, { method: "GET", path });
			expect(JSON.parse(await served.text())).toMatchObject({ resource });
		}
	});

	test("has GET, POST and DELETE, and no other method", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);
		const listening = await client.get(wide);

		for (const method of ["HEAD", "PUT", "PATCH", "OPTIONS"]) {
			const headers = headersOf(wide, client.session);
			const asked = await send(host.origin, { method, headers });
			expect([method, asked.status, asked.headers.allow]).toEqual([method, 405, "GET, POST, DELETE"]);
			await asked.text();
		}

		await (await client.post(wide, call(7, "announce"))).text();
		await listening.count(2);
	});

	describe("origins", () => {
		test("that are not allowed are refused, before anything else", async () => {
			const host = await run(start, { allowedOrigins: [app] });
			const wide = await token();

			for (const method of ["GET", "POST", "DELETE", "OPTIONS"]) {
				const headers = { ...headersOf(wide), origin: "https://evil.example" };
				const refused = await send(host.origin, {
					method,
					headers,
					...(method === "POST" && { body: ping }),
				});
				expect(await errorOf(refused)).toEqual([403, -32000, "Invalid Origin header"]);
				expect(refused.headers).not.toHaveProperty("access-control-allow-origin");
			}
		});

		test("that are allowed may read every answer", async () => {
			const host = await run(start, { allowedOrigins: [app] });
			const wide = await token();
			const client = await host.open(wide);
			const headers = { ...headersOf(wide, client.session), origin: app };

			for (const [outgoing, status] of [
				[{ method: "OPTIONS", headers: { origin: app, "access-control-request-method": "POST" } }, 204],
				[{ method: "POST", headers: { ...headers, authorization: "" }, body: ping }, 401],
				[{ method: "POST", headers, body: "{" }, 400],
				[{ method: "POST", headers, body: ping }, 200],
				[{ method: "GET", headers }, 200],
				[{ method: "GET", headers: { ...headers, "last-event-id": "x" } }, 400],
				[{ method: "DELETE", headers }, 204],
			] as const) {
				const asked = await send(host.origin, outgoing);
				expect([outgoing.method, asked.status]).toEqual([outgoing.method, status]);
				expect(asked.headers).toMatchObject({
					"access-control-allow-origin": app,
					"access-control-expose-headers": expect.stringContaining("Mcp-Session-Id, WWW-Authenticate"),
					vary: "Origin",
				});
			}
		});

		test("may ask what they may send", async () => {
			const host = await run(start, { allowedOrigins: [app] });

			const preflight = await send(host.origin, { method: "OPTIONS", headers: { origin: app } });

			expect(preflight.status).toBe(204);
			expect(preflight.headers).toMatchObject({
				"access-control-allow-methods": "GET, POST, DELETE",
				"access-control-allow-headers": expect.stringContaining("Authorization"),
			});
		});
	});

	test("a host that was not meant is refused", async () => {
		const host = await run(start, { allowedHosts: ["mcp.example.com"] });
		const wide = await token();

		const refused = await send(host.origin, { method: "GET", headers: headersOf(wide) });
		expect(await errorOf(refused)).toEqual([403, -32000, "Invalid Host header"]);
		const meant = { ...headersOf(wide, "x"), host: "mcp.example.com" };
		expect((await send(host.origin, { method: "GET", headers: meant })).status).toBe(404);
	});

	test("a GET takes a stream, or nothing", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);

		for (const accept of ["application/json", "*/*", "text/*", ""]) {
			const headers = { ...headersOf(wide, client.session), accept };
			const refused = await send(host.origin, { method: "GET", headers });
			expect((await errorOf(refused))[0]).toBe(406);
		}
	});

	test("a revision that is not spoken is refused", async () => {
		const host = await run(start);
		const wide = await token();
		const client = await host.open(wide);

		for (const method of ["GET", "POST"]) {
			const headers = headersOf(wide, client.session, "1999-01-01");
			const refused = await send(host.origin, { method, headers, ...(method === "POST" && { body: ping }) });
			const [status, code, message] = await errorOf(refused);
			expect([status, code]).toEqual([400, -32000]);
			expect(message).toMatch(/^Bad Request: Unsupported protocol version/);
		}
	});

	describe("credentials", () => {
		test.each([
			["a token that is none", "Bearer x", 401, 'Bearer error="invalid_token"'],
			["another scheme", "Basic YTpi", 401, "Bearer "],
			["no token after the scheme", "Bearer", 400, 'Bearer error="invalid_request"'],
			["two tokens", ["Bearer x", "Bearer y"], 400, 'Bearer error="invalid_request"'],
		])("%s", async (_, authorization, status, challenge) => {
			const host = await run(start);
			const headers = { ...headersOf(undefined), authorization };

			for (const method of ["GET", "POST", "DELETE"]) {
				const refused = await send(host.origin, {
					method,
					headers,
					...(method === "POST" && { body: ping }),
				});
				expect([method, refused.status]).toEqual([method, status]);
				expect(refused.headers["www-authenticate"]).toContain(challenge);
				expect(refused.headers["www-authenticate"]).toContain("resource_metadata=");
			}
		});

		test("in the query are none", async () => {
			const host = await run(start);
			const path = `/mcp?access_token=${await token()}`;

			const refused = await send(host.origin, {
				method: "POST",
				path,
				headers: headersOf(undefined),
				body: ping,
			});

			expect(refused.status).toBe(401);
		});
	});

	describe("a body", () => {
		const json = "application/json";
		const large = `"${"x".repeat(4 * MIB)}"`;
		test.each<[string, string | undefined, string | Uint8Array, number]>([
			["that is no JSON", json, "{", 400],
			["that is empty", json, "", 400],
			["that is no UTF-8", json, Uint8Array.of(0x22, 0xff, 0x22), 400],
			["that is no JSON-RPC", json, '"x"', 400],
			["that is an empty batch", json, "[]", 400],
			["that is a batch of 101", json, `[${Array(101).fill(ping).join()}]`, 400],
			["of more than 4 MiB", json, large, 413],
			["that is text", "text/plain", ping, 415],
			["that is a form", "application/x-www-form-urlencoded", "a=b", 415],
			["of no type", undefined, ping, 415],
		])("%s", async (_, type, body, status) => {
			const host = await run(start);
			const wide = await token();
			const client = await host.open(wide);
			const { "content-type": __, ...headers } = headersOf(wide, client.session);
			const typed = { ...headers, ...(type !== undefined && { "content-type": type }) };

			const refused = await send(host.origin, { method: "POST", headers: typed, body });
			expect([refused.status, await refused.closed]).toEqual([status, "ended"]);
			const stranger = await send(host.origin, {
				method: "POST",
				headers: { ...typed, authorization: "Bearer x" },
				body,
			});
			expect(stranger.status).toBe(401);
		});

		test("with a charset, and of one byte less than too much, is read", async () => {
			const host = await run(start);
			const wide = await token();
			const client = await host.open(wide);
			const message = JSON.stringify(call(7, "search", { query: "", pages: 0 }));
			const body = message.replace('"query":""', `"query":"${"x".repeat(4 * MIB - message.length)}"`);
			const headers = {
				...headersOf(wide, client.session),
				"content-type": "Application/JSON; charset=utf-8",
			};

			const posted = await send(host.origin, { method: "POST", headers, body });

			expect(await posted.closed).toBe("ended");
			expect([posted.status, told(posted).length]).toEqual([200, 2]);
		});
	});
}
