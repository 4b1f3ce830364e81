import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
	type AuthorizationServer,
	startAuthorizationServer,
} from "../../examples/fastify/authorization-server.ts";
import { freePort } from "../../examples/fastify/port.ts";

const readme = readFileSync("README.md", "utf8");

/** The first code block of a language after a heading, as printed. */
function block(heading: string, language: string): string {
	const section = readme.slice(readme.indexOf(`\n## ${heading}\n`));
	const code = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(section)?.[1];
	if (code === undefined) throw new Error(`README has no ${language} under ${heading}`);
	return code;
}

const TOOLS = `
import { McpServer } from "@modelcontextprotocol/server";
export function createTools() {
	const server = new McpServer({ name: "ten lines", version: "1.0.0" });
	server.registerTool("search", { description: "Finds." }, async () => ({ content: [{ type: "text", text: "found" }] }));
	server.registerTool("fetch", { description: "Fetches." }, async () => ({ content: [{ type: "text", text: "fetched" }] }));
	return server;
}`;

let authorizationServer: AuthorizationServer;
let folder: string;
let host: ReturnType<typeof spawn>;
let url: URL;

beforeAll(async () => {
	authorizationServer = await startAuthorizationServer({ resources: () => true });
	// Below the project, so that the packages are found.
	folder = mkdtempSync(join(import.meta.dirname, "tmp-"));
	writeFileSync(join(folder, "server.mjs"), block("Ten lines", "js"));
	writeFileSync(join(folder, "data.json"), block("Policy data", "json"));
	writeFileSync(join(folder, "tools.mjs"), TOOLS);
	const port = await freePort();
	url = new URL(`http://127.0.0.1:${port}/mcp`);
	const tsx = ["--import", "tsx", join(folder, "server.mjs")];
	host = spawn(process.execPath, tsx, {
		cwd: folder,
		env: {
			...process.env,
			ISSUER: authorizationServer.issuer,
			PORT: String(port),
			TSX_TSCONFIG_PATH: join(process.cwd(), "tsconfig.json"),
		},
		stdio: ["ignore", "pipe", "inherit"],
	});
	if (host.stdout === null) throw new Error("no output");
	for await (const line of createInterface(host.stdout)) if (line.includes("Server listening")) break;
}, 30_000);

afterAll(async () => {
	host.kill();
	await once(host, "exit");
	rmSync(folder, { recursive: true });
	await authorizationServer.close();
});

async function call(aud: string, tool: string): Promise<unknown> {
	const token = await authorizationServer.mint({ sub: "alice", client_id: "cli", aud });
	const client = new Client({ name: "reader", version: "1.0.0" });
	await client.connect(
		new StreamableHTTPClientTransport(url, { authProvider: { token: async () => token } }),
	);
	try {
		return await client.callTool({ name: tool, arguments: {} });
	} finally {
		await client.close();
	}
}

it("runs as printed: a token of the server calls its tools", async () => {
	expect(await call("https://mcp.example.com", "fetch")).toMatchObject({ content: [{ text: "fetched" }] });
});

it("runs as printed: a token of one tool does not call the other", async () => {
	expect(await call("https://mcp.example.com/tools/search", "search")).toMatchObject({
		content: [{ text: "found" }],
	});
	await expect(call("https://mcp.example.com/tools/search", "fetch")).rejects.toThrow("Insufficient scope");
});
