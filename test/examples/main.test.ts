import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../examples/fastify/port.ts";

const BOTH = "https://mcp.example.com";
const SEARCH = "https://mcp.example.com/tools/search";

/** What the example prints: where everything is. */
interface Urls {
	readonly mcp: string;
	readonly token: string;
	readonly drop: string;
	readonly open: string;
	readonly metadata: string;
	readonly issuer: string;
}

/** Starts the example in a process of its own. */
async function start(flags: readonly string[] = [], port = 0): Promise<Urls & { child: ChildProcess }> {
	const child = spawn(process.execPath, ["--import", "tsx", "examples/fastify/main.ts", ...flags], {
		env: { ...process.env, PORT: String(port) },
		stdio: ["ignore", "pipe", "inherit"],
	});
	onTestFinished(() => void child.kill());
	for await (const line of createInterface(child.stdout)) return { ...JSON.parse(line), child };
	throw new Error("the example has ended");
}

async function post(url: string, body: object): Promise<Response> {
	const headers = { "content-type": "application/json" };
	return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

async function mint({ token }: Urls, claims: object = {}): Promise<string> {
	const response = await post(token, { sub: "alice", client_id: "desktop", aud: BOTH, ...claims });
	const { access_token } = (await response.json()) as { access_token: string };
	return access_token;
}

interface Sending {
	readonly method?: string;
	readonly token: string;
	readonly session?: string;
	readonly cursor?: string;
	readonly body?: unknown;
}

async function send({ mcp }: Urls, { method = "POST", token, session, cursor, body }: Sending) {
	return fetch(mcp, {
		method,
		headers: {
			accept: method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
			authorization: `Bearer ${token}`,
			...(body !== undefined && { "content-type": "application/json" }),
			...(session !== undefined && { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" }),
			...(cursor !== undefined && { "last-event-id": cursor }),
		},
		...(body !== undefined && { body: JSON.stringify(body) }),
	});
}

const initialize = {
	jsonrpc: "2.0",
	id: 0,
	method: "initialize",
	params: {
		protocolVersion: "2025-11-25",
		capabilities: {},
		clientInfo: { name: "test", version: "1.0.0" },
	},
};

const call = (id: number, name: string, args: object) => ({
	jsonrpc: "2.0",
	id,
	method: "tools/call",
	params: { name, arguments: args, _meta: { progressToken: id } },
});

async function openSession(urls: Urls, token: string): Promise<string> {
	const response = await send(urls, { token, body: initialize });
	expect(response.status).toBe(200);
	await response.text();
	const session = response.headers.get("mcp-session-id") ?? "";
	await send(urls, { token, session, body: { jsonrpc: "2.0", method: "notifications/initialized" } });
	return session;
}

/** The code of a refusal; `undefined`: it says none. */
async function codeOf(response: Response): Promise<string | undefined> {
	const { error } = (await response.json()) as { error: { data?: { code: string } } };
	return error.data?.code;
}

test("prints where it is, mints tokens, cuts streams, and ends when it is told to", async () => {
	const port = await freePort();
	const urls = await start([], port);
	expect(new URL(urls.mcp).port).toBe(String(port));
	expect(await (await fetch(urls.metadata)).json()).toMatchObject({
		resource: urls.mcp,
		authorization_servers: [urls.issuer],
	});
	expect((await fetch(`${urls.issuer}/.well-known/oauth-authorization-server`)).status).toBe(200);

	const token = await mint(urls);
	const session = await openSession(urls, token);
	const waits = await send(urls, { token, session, body: call(1, "fetch", { id: "a", gate: "g" }) });
	const reader = waits.body?.getReader();
	await reader?.read();
	expect(await (await post(urls.drop, { session })).json()).toEqual({ dropped: 1 });
	await expect(reader?.read()).rejects.toThrow();
	expect(await (await post(urls.drop, { session: "nobody's" })).json()).toEqual({ dropped: 0 });
	expect((await post(urls.open, { session, gate: "g" })).status).toBe(204);

	expect((await post(urls.token, { sub: "alice" })).status).toBe(400);
	expect((await send(urls, { token: await mint(urls, { exp: 1 }), body: initialize })).status).toBe(401);
	expect(
		(await send(urls, { token: await mint(urls, { aud: "https://x.example" }), body: initialize })).status,
	).toBe(401);

	urls.child.kill("SIGTERM");
	expect(await once(urls.child, "exit")).toEqual([0, null]);
});

test("--no-guard: whoever has a token and a session id goes on", async () => {
	const urls = await start(["--no-guard"]);
	const session = await openSession(urls, await mint(urls));
	const token = await mint(urls, { sub: "mallory" });
	const response = await send(urls, { token, session, body: call(1, "search", { query: "x" }) });
	expect(response.status).toBe(200);
	expect(await response.text()).toContain("5 pages about x");
});

test("--profile strict: a narrower token ends the session", async () => {
	const urls = await start(["--profile", "strict"]);
	const session = await openSession(urls, await mint(urls));
	const token = await mint(urls, { aud: SEARCH });
	const response = await send(urls, { token, session, body: call(1, "search", { query: "x" }) });
	expect(response.status).toBe(403);
	expect(await codeOf(response)).toBe("binding_drift");
});

test("--replay prefix: what comes before the uncovered event is sent", async () => {
	const urls = await start(["--replay", "prefix"]);
	const token = await mint(urls);
	const session = await openSession(urls, token);
	const body = [
		call(1, "search", { query: "x", gate: "later", gate_after: 5 }),
		call(2, "fetch", { id: "a", gate: "g" }),
	];
	const response = await send(urls, { token, session, body });
	const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
	let text = "";
	while (!text.includes("page 5")) text += (await reader?.read())?.value ?? "";
	const [, cursor = ""] = /^id: (.*)$/m.exec(text) ?? [];
	await post(urls.open, { session, gate: "g" });
	while (!text.includes("document a")) text += (await reader?.read())?.value ?? "";

	const narrow = await mint(urls, { aud: SEARCH });
	const prefix = await send(urls, { method: "GET", token: narrow, session, cursor });
	expect(prefix.status).toBe(200);
	const sent = await prefix.text();
	expect(sent).toContain("page 5");
	expect(sent).not.toContain("document a");
});

test("--foreign-principal keep: a stranger gets what an unknown session id gets", async () => {
	const urls = await start(["--foreign-principal", "keep"]);
	const session = await openSession(urls, await mint(urls));
	const token = await mint(urls, { sub: "mallory" });
	const response = await send(urls, { method: "DELETE", token, session });
	expect(response.status).toBe(404);
	expect((await send(urls, { method: "DELETE", token: await mint(urls), session })).status).toBe(204);
});
