import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { call, openSession, told } from "../support/client.ts";

const ready = z.object({ mcp: z.url(), token: z.string() });
/** In the order of run-all.ts, with the newest revision that each speaks. */
const recipes = [
	["express", "2025-11-25"],
	["hono", "2025-11-25"],
	["mcp-proxy", "2025-11-25"],
	["fastmcp", "2025-11-25"],
	["mcp-lite", "2025-06-18"],
	["fastify-mcp", "2025-11-25"],
] as const;

const started: z.infer<typeof ready>[] = [];
let child: ChildProcess;

beforeAll(async () => {
	child = spawn(process.execPath, ["--import", "tsx", "test/hosts/recipes/run-all.ts"], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	if (child.stdout === null) throw new Error("no output");
	for await (const line of createInterface(child.stdout)) {
		if (line.startsWith("{")) started.push(ready.parse(JSON.parse(line)));
		if (started.length === recipes.length) break;
	}
});

afterAll(async () => {
	child.kill();
	await once(child, "exit");
});

test.each([...recipes.entries()])("%i: examples/%s/main.ts runs", async (index, [, version]) => {
	const { mcp, token } = ready.parse(started[index]);

	const client = await openSession(new URL(mcp).origin, token, version);
	const posted = await client.post(token, call(7, "search", { query: "owls", pages: 0 }));

	expect(await posted.closed).toBe("ended");
	expect(told(posted).at(-1)).toMatch(/7 = (found|0 pages about owls)$/);
});
