import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { McpServer } from "@modelcontextprotocol/server";
import Fastify from "fastify";
import { resumeGuard } from "mcp-resume-guard/fastify";
import { expect, onTestFinished, test } from "vitest";
import { addSdkRoute } from "../../examples/fastify/sdk-route.ts";
import { temporaryFolder } from "./folder.ts";

// Node is all that there is: nothing on PATH, no OPA, no Go.
const env = {
	PATH: "/nowhere",
	NO_COLOR: "1",
	HOME: "/nowhere",
	TSX_TSCONFIG_PATH: resolve("tsconfig.json"),
};

const server = "https://mcp.example.com";
const readers = "https://mcp.example.com/readers";

test("a new user changes coverage, sees a row fail, mends it, and runs a host with it", {
	timeout: 120_000,
}, async () => {
	const home = temporaryFolder();
	const command = (...argv: string[]) => mcpResumeGuard(home, argv);
	const edit = (path: string, change: (json: Json) => void) => {
		const file = join(home, "policy", path);
		const json = JSON.parse(readFileSync(file, "utf8")) as Json;
		change(json);
		writeFileSync(file, JSON.stringify(json, undefined, 2));
	};

	// A policy to start from is good as it is.
	expect(await command("init", "policy")).toMatchObject({ exitCode: 0 });
	expect(await command("test", "policy")).toMatchObject({
		exitCode: 0,
		stdout: expect.stringMatching(/6 passed, 0 failed\n$/),
	});

	// Coverage: a token for readers searches. And the row that says what was meant: it fetches, too.
	edit("mcp/data.json", ({ coverage }) => {
		coverage[readers] = [`${server}/tools/search`];
	});
	edit("tests/tools.json", ({ cases }) => {
		cases.push({
			name: "a token for readers calls fetch",
			facts: { tool: "fetch", presented: { aud: [readers] }, session: { binding: { aud: [readers] } } },
			want: { outcome: "proceed" },
		});
	});
	const failed = await command("test", "policy");
	expect(failed.exitCode).toBe(1);
	expect(failed.stdout).toContain(
		"FAIL a token for readers calls fetch\n  decided by: audience_not_covered\n",
	);
	expect(failed.stdout).toMatch(/≠ "outcome": "proceed" +│ "outcome": "reauthorize"\n/);
	expect(failed.stdout).toMatch(/6 passed, 1 failed\n$/);

	// What is missing is in `held.missing` of what was got.
	edit("mcp/data.json", ({ coverage }) => {
		coverage[readers].push(`${server}/tools/fetch`);
	});
	expect(await command("test", "policy")).toMatchObject({
		exitCode: 0,
		stdout: expect.stringMatching(/pass a token for readers calls fetch\n7 passed, 0 failed\n$/),
	});
	expect(await command("check", "policy", "--strict")).toMatchObject({
		exitCode: 0,
		stdout: "0 errors, 0 warnings\n",
		stderr: expect.stringMatching(/left out: opa fmt, opa check/),
	});

	// A host decides by that file.
	const call = await startHost(join(home, "policy/mcp/data.json"));
	await expect(call(readers, "fetch")).resolves.toMatchObject({ content: [{ text: "fetched" }] });
	await expect(call(`${server}/tools/search`, "fetch")).rejects.toThrow("Insufficient scope");
});

// biome-ignore lint/suspicious/noExplicitAny: what a user edits by hand
type Json = Record<string, any>;

async function mcpResumeGuard(cwd: string, argv: readonly string[]) {
	const tsx = import.meta.resolve("tsx");
	const child = spawn(process.execPath, ["--import", tsx, resolve("src/cli/main.ts"), ...argv], { cwd, env });
	child.stdin.end();
	const exited = once(child, "exit");
	const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
	const [exitCode] = await exited;
	return { exitCode, stdout, stderr };
}

async function startHost(data: string) {
	const app = Fastify({ forceCloseConnections: true });
	onTestFinished(() => app.close());
	// The token is its own audience: what verifies tokens is not what is looked at here.
	const tokens = async (token: string) => ({
		iss: "https://as.example.com",
		sub: "alice",
		client_id: "desktop",
		aud: Buffer.from(token, "base64url").toString(),
		exp: Date.now() / 1000 + 60,
	});
	const authorizationServers = ["https://as.example.com"];
	await app.register(resumeGuard, { data, tokens, authorizationServers });
	addSdkRoute(app, createTools);
	await app.listen({ host: "127.0.0.1", port: 0 });
	const { port } = app.server.address() as AddressInfo;
	const url = new URL(`http://127.0.0.1:${port}/mcp`);

	return async (aud: string, tool: string) => {
		const token = Buffer.from(aud).toString("base64url");
		const client = new Client({ name: "reader", version: "1.0.0" });
		await client.connect(
			new StreamableHTTPClientTransport(url, { authProvider: { token: async () => token } }),
		);
		try {
			return await client.callTool({ name: tool, arguments: {} });
		} finally {
			await client.close();
		}
	};
}

function createTools(): McpServer {
	const tools = new McpServer({ name: "tools", version: "1.0.0" });
	tools.registerTool("fetch", { description: "Fetches." }, async () => ({
		content: [{ type: "text", text: "fetched" }],
	}));
	return tools;
}
