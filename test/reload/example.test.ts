import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import type { PolicyData } from "../../src/index.ts";
import { temporaryFolder } from "./support.ts";

/** `npm run example -- --data FILE`, in a process of its own. */
async function start(
	dataFile: string,
): Promise<{ mcp: string; token: string; open: string; child: ChildProcess }> {
	const child = spawn(process.execPath, ["--import", "tsx", "examples/fastify/main.ts", "--data", dataFile], {
		env: { ...process.env, PORT: "0" },
		stdio: ["ignore", "pipe", "ignore"],
	});
	onTestFinished(() => void child.kill());
	for await (const line of createInterface(child.stdout)) return { ...JSON.parse(line), child };
	throw new Error("the example has ended");
}

async function post(url: string, body: object): Promise<Response> {
	const headers = { "content-type": "application/json" };
	return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

test("an edit of the data takes effect in a running host within a second, and drops no stream", async () => {
	const dataFile = join(temporaryFolder(), "data.json");
	const { mcp, token, open } = await start(dataFile);
	const made = JSON.parse(readFileSync(dataFile, "utf8")) as PolicyData;
	const minted = await post(token, { sub: "alice", client_id: "desktop", aud: "https://mcp.example.com" });
	const { access_token } = (await minted.json()) as { access_token: string };

	const requests: { method: string; status: number; resumes: boolean }[] = [];
	const transport = new StreamableHTTPClientTransport(new URL(mcp), {
		fetch: async (url, init = {}) => {
			const headers = new Headers(init.headers);
			headers.set("authorization", `Bearer ${access_token}`);
			const response = await fetch(url, { ...init, headers });
			const { method = "GET" } = init;
			requests.push({ method, status: response.status, resumes: headers.has("last-event-id") });
			return response;
		},
	});
	const client = new Client({ name: "test", version: "1.0.0" });
	const errors: Error[] = [];
	client.onerror = (error) => errors.push(error);
	await client.connect(transport);
	onTestFinished(() => client.close());
	const search = (pages = 1) => client.callTool({ name: "search", arguments: { query: "x", pages } });

	// A stream that is open during all that follows: its first event has come, the last has not.
	const seen: number[] = [];
	let primed = () => {};
	const started = new Promise<void>((resolve) => {
		primed = resolve;
	});
	const waiting = client.callTool(
		{ name: "search", arguments: { query: "y", pages: 4, gate: "g", gate_after: 2 } },
		{
			onprogress: ({ progress }) => {
				seen.push(progress);
				if (progress === 2) primed();
			},
		},
	);
	await started;
	await expect(search()).resolves.toMatchObject({ content: [{ text: "1 pages about x" }] });

	// Half of a file is no reason to change anything.
	writeFileSync(dataFile, JSON.stringify(made).slice(0, 100));
	await new Promise((resolve) => setTimeout(resolve, 500));
	await expect(search()).resolves.toBeDefined();

	const other = { aud: ["https://other.example"], scope: [] };
	const edited = performance.now();
	writeFileSync(dataFile, JSON.stringify({ ...made, tools: { ...made.tools, fetch: other } }));
	const fetchTool = () => client.callTool({ name: "fetch", arguments: { id: "a" } });
	await expect
		.poll(
			() =>
				fetchTool().then(
					() => "passes",
					() => "refused",
				),
			{ timeout: 5000 },
		)
		.toBe("refused");
	expect(performance.now() - edited).toBeLessThan(1000);
	await expect(search()).resolves.toBeDefined();

	const { sessionId: session } = transport;
	expect((await post(open, { session, gate: "g" })).status).toBe(204);
	await expect(waiting).resolves.toMatchObject({ content: [{ text: "4 pages about y" }] });
	expect(seen).toEqual([1, 2, 3, 4]);
	// It came on the stream that it began on.
	expect(requests.filter(({ resumes }) => resumes)).toEqual([]);
	expect(requests.filter(({ status }) => status >= 400).every(({ status }) => status === 403)).toBe(true);

	// And back.
	const back = performance.now();
	writeFileSync(dataFile, JSON.stringify(made));
	await expect
		.poll(
			() =>
				fetchTool().then(
					() => "passes",
					() => "refused",
				),
			{ timeout: 5000 },
		)
		.toBe("passes");
	expect(performance.now() - back).toBeLessThan(1000);
});
