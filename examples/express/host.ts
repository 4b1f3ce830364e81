import express, { type Express } from "express";
import { createNodeGuard, type NodeGuard, type NodeGuardOptions } from "mcp-resume-guard/node";

/** An MCP host on Express. Close `guard` before the server: streams stay open for as long as clients like. */
export async function createExpressHost(
	options: NodeGuardOptions,
): Promise<{ app: Express; guard: NodeGuard }> {
	const guard = await createNodeGuard(options);
	const app = express();
	app.use(guard.listener());
	return { app, guard };
}
