import { Hono } from "hono";
import { createFetchGuard, type FetchGuard, type FetchGuardOptions } from "mcp-resume-guard/fetch";

/** An MCP host on Hono. Close `guard` before the server: streams stay open for as long as clients like. */
export async function createHonoHost(options: FetchGuardOptions): Promise<{ app: Hono; guard: FetchGuard }> {
	const guard = await createFetchGuard(options);
	const app = new Hono();
	app.use(async (context, next) => (await guard.handle(context.req.raw)) ?? next());
	return { app, guard };
}
