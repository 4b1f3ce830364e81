import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { gunzipSync } from "node:zlib";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
	type AuthorizationServer,
	startAuthorizationServer,
} from "../../examples/fastify/authorization-server.ts";
import { freePort } from "../../examples/fastify/port.ts";
import { type DecisionLogEvent, readDecisionLogEvent } from "../../src/log/index.ts";

/** The nth code block of a language, as printed. */
function block(page: string, language: string, nth = 0): string {
	const blocks = [
		...readFileSync(page, "utf8").matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "g")),
	];
	const code = blocks[nth]?.[1];
	if (code === undefined) throw new Error(`${page} has no ${language}`);
	return code;
}

const TOOLS = `
import { McpServer } from "@modelcontextprotocol/server";
export function createTools() {
	const server = new McpServer({ name: "as printed", version: "1.0.0" });
	for (const name of ["search", "fetch"]) {
		server.registerTool(name, { description: name }, async () => ({ content: [{ type: "text", text: name }] }));
	}
	return server;
}`;
const data = JSON.parse(readFileSync("policies/mcp/data.json", "utf8"));

let authorizationServer: AuthorizationServer;
let folder: string;
let host: ReturnType<typeof spawn>;
let url: URL;
let lines: Interface;
let printed = "";
const uploaded: DecisionLogEvent[] = [];
const authorizations = new Set<string | undefined>();
const service = createServer((request, response) => {
	const chunks: Buffer[] = [];
	request.on("data", (chunk) => chunks.push(chunk));
	request.on("end", () => {
		uploaded.push(...(JSON.parse(gunzipSync(Buffer.concat(chunks)).toString()) as DecisionLogEvent[]));
		authorizations.add(request.headers.authorization);
		response.end();
	});
});

async function hasPrinted(text: RegExp): Promise<void> {
	while (!text.test(printed)) await once(lines, "line");
}

beforeAll(async () => {
	authorizationServer = await startAuthorizationServer({ resources: () => true });
	service.listen(0, "127.0.0.1");
	await once(service, "listening");
	// Below the project, so that the packages are found.
	folder = mkdtempSync(join(import.meta.dirname, "tmp-"));
	writeFileSync(join(folder, "server.mjs"), block("docs/decision-log.md", "js"));
	writeFileSync(join(folder, "telemetry.mjs"), block("docs/telemetry.md", "js"));
	writeFileSync(join(folder, "data.json"), JSON.stringify(data));
	const candidate = {
		...data,
		coverage: { "https://mcp.example.com/tools/search": ["https://mcp.example.com/tools/fetch"] },
	};
	writeFileSync(join(folder, "candidate.json"), JSON.stringify(candidate));
	writeFileSync(join(folder, "tools.mjs"), TOOLS);
	const port = await freePort();
	url = new URL(`http://127.0.0.1:${port}/mcp`);
	const { port: logs } = service.address() as AddressInfo;
	const imports = ["tsx", join(folder, "telemetry.mjs")].flatMap((module) => ["--import", module]);
	host = spawn(process.execPath, [...imports, join(folder, "server.mjs")], {
		cwd: folder,
		env: {
			...process.env,
			ISSUER: authorizationServer.issuer,
			PORT: String(port),
			LOGS_URL: `http://127.0.0.1:${logs}`,
			LOGS_TOKEN: "the-token-of-the-service",
			PSEUDONYM_KEY: "a key of the tests, long enough",
			EXPORT_INTERVAL: "200",
			TSX_TSCONFIG_PATH: join(process.cwd(), "tsconfig.json"),
		},
		stdio: ["ignore", "pipe", "inherit"],
	});
	if (host.stdout === null) throw new Error("no output");
	lines = createInterface(host.stdout).on("line", (line) => {
		printed += `${line}\n`;
	});
	await hasPrinted(/Server listening/);
}, 30_000);

afterAll(async () => {
	if (host.exitCode === null) {
		host.kill("SIGKILL");
		await once(host, "exit");
	}
	rmSync(folder, { recursive: true });
	service.close();
	await authorizationServer.close();
});

it("runs as printed: a file, a service, a candidate and metrics hear of every decision, and of no secret", async () => {
	const token = await authorizationServer.mint({
		sub: "the-subject",
		client_id: "cli",
		aud: "https://mcp.example.com/tools/search",
	});
	const client = new Client({ name: "reader", version: "1.0.0" });
	const transport = new StreamableHTTPClientTransport(url, { authProvider: { token: async () => token } });
	await client.connect(transport);
	const { sessionId = "" } = transport;
	expect(await client.callTool({ name: "search", arguments: {} })).toMatchObject({
		content: [{ text: "search" }],
	});
	await expect(client.callTool({ name: "fetch", arguments: {} })).rejects.toThrow();
	await client.close();
	await hasPrinted(/outcome': 'reauthorize'[\s\S]*mcp_resume_guard\.shadow\.widening/);
	host.kill("SIGTERM");
	const [code] = await once(host, "exit");
	expect(code).toBe(0);

	const written = readFileSync(join(folder, "decisions.jsonl"), "utf8").trimEnd().split("\n");
	const records = written.map((line) => {
		const read = readDecisionLogEvent(line);
		if ("problem" in read) throw new Error(read.problem);
		return read.record;
	});
	const told = records.map(({ path, custom }) => `${path} ${custom.code}`);
	expect(told.filter((one) => one === "mcp/call/decision covered")).toHaveLength(1);
	expect(told.filter((one) => one === "mcp/call/decision audience_not_covered")).toHaveLength(1);
	expect(told.filter((one) => one.startsWith("shadow/mcp/call"))).toEqual([
		"shadow/mcp/call/decision covered",
	]);
	expect(records.find(({ custom }) => custom.shadow !== undefined)?.custom.shadow).toMatchObject({
		widens: true,
	});
	expect(new Set(records.map(({ labels }) => labels.app))).toEqual(new Set(["mcp"]));

	expect(uploaded).toEqual(records);
	expect([...authorizations]).toEqual(["Bearer the-token-of-the-service"]);
	expect(printed).toContain("mcp_resume_guard.decisions");
	for (const secret of [token, sessionId, "the-subject", "the-token-of-the-service"]) {
		expect(written.join("\n")).not.toContain(secret);
		expect(printed).not.toContain(secret);
	}
}, 60_000);

it("has a record in it that can be read, and a mask that builds", async () => {
	const record = block("docs/decision-log.md", "json").replaceAll("\n", " ");
	expect(readDecisionLogEvent(record)).toHaveProperty("record");
	expect(block("docs/decision-log.md", "rego")).toContain("package system.log");
});

it("names every metric that there is", async () => {
	const page = readFileSync("docs/telemetry.md", "utf8");
	const source = ["telemetry", "observe"]
		.map((name) => readFileSync(`src/telemetry/${name}.ts`, "utf8"))
		.join("\n");
	const created = [...source.matchAll(/create\w+\("(mcp_resume_guard\.[\w.]+)", \{\s+unit: "([^"]+)"/g)];
	expect(created.length).toBeGreaterThan(15);
	for (const [, name, unit] of created)
		expect(page).toMatch(new RegExp(`\`${name}\` +\\| [\\w -]+\\| \`${unit}\``));
});
