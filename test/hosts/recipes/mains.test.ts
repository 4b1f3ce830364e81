import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { call, openSession, told } from "../support/client.ts";

const ready = z.object({ mcp: z.url(), token: z.string() });

/** Runs a file of examples/, as its first line says; resolves with what it prints when it is there. */
async function run(file: string, ...args: string[]): Promise<z.infer<typeof ready>> {
	const child = spawn(process.execPath, ["--import", "tsx", `examples/${file}`, ...args], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	onTestFinished(async () => {
		child.kill();
		await once(child, "exit");
	});
	for await (const line of createInterface(child.stdout)) {
		if (line.startsWith("{")) return ready.parse(JSON.parse(line));
	}
	throw new Error(`${file} has ended`);
}

test.each([
	["express/main.ts"],
	["hono/main.ts"],
	["mcp-proxy/main.ts"],
	["fastmcp/main.ts"],
	["fastmcp/main.ts", "inside"],
	["mcp-lite/main.ts", undefined, "2025-06-18"],
	["fastify-mcp/main.ts"],
])("examples/%s %s runs", async (file, argument, version) => {
	const { mcp, token } = await run(file, ...(argument === undefined ? [] : [argument]));

	const client = await openSession(new URL(mcp).origin, token, version);
	const posted = await client.post(token, call(7, "search", { query: "owls", pages: 0 }));

	expect(await posted.closed).toBe("ended");
	expect(told(posted).at(-1)).toMatch(/7 = (found|0 pages about owls)$/);
});
