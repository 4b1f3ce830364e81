import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { PolicyData } from "../../src/index.ts";

export const MCP = "https://mcp.example.com";
export const shipped: PolicyData = JSON.parse(readFileSync("policies/mcp/data.json", "utf8"));

/** A folder that is gone after the test. */
export function temporaryFolder(): string {
	const folder = mkdtempSync(join(tmpdir(), "reload-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	return folder;
}

export function writeData(path: string, changes: object): void {
	writeFileSync(path, JSON.stringify({ ...shipped, ...changes }));
}

const now = 1_796_000_000;
const alice = { iss: "https://as.example.com", sub: "alice", client_id: "desktop", aud: [MCP], scope: [] };

/** A call of a tool, with a token that covers what is below `/tools/`. */
export function callOf(tool: string) {
	return {
		now,
		request: { method: "POST", transport: "streamable-http", session: "known" },
		session: { binding: alice, transport: "streamable-http", opened_at: now - 60 },
		presented: { ...alice, exp: now + 3600 },
		tool,
	} as const;
}
