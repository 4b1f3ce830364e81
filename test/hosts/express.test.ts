import express, { type ErrorRequestHandler } from "express";
import { createNodeGuard } from "mcp-resume-guard/node";
import { describe, expect, test } from "vitest";
import { createExpressHost } from "../../examples/express/host.ts";
import { hostSuite } from "./suite.ts";
import { headersOf, initialize } from "./support/client.ts";
import { run, type StartHost, token } from "./support/host.ts";
import { send } from "./support/http.ts";
import { listen, silent, stop } from "./support/listen.ts";

const start: StartHost = async (options, createServer) => {
	const { app, guard } = await createExpressHost({
		...options,
		connect: (transport) => createServer().connect(transport),
		logger: silent,
	});
	const { origin, server } = await listen(app);
	return {
		origin,
		endSessions: guard.endSessions,
		async close() {
			await guard.close();
			await stop(server);
		},
	};
};

hostSuite("Express", start);

describe("Express", () => {
	// Answers with what the guard passes on, below `/api` and after a parser.
	const startBelow: StartHost = async (options) => {
		const guard = await createNodeGuard({ ...options, path: "/api/mcp", logger: silent });
		const app = express();
		app.use(express.json());
		app.use(
			"/api",
			guard.listener((_request, response, { body }) => {
				if ("fail" in Object(body).params) throw new Error("failed");
				response.setHeader("content-type", "application/json").end(JSON.stringify(body));
			}),
		);
		app.use("/api/other", (_request, response) => void response.send("other"));
		app.use(((error, _request, response, _next) => {
			response.status(500).send(error.message);
		}) satisfies ErrorRequestHandler);
		const { origin, server } = await listen(app);
		return { origin, endSessions: guard.endSessions, close: () => stop(server) };
	};

	test("takes a body that has been parsed, below a mount point", async () => {
		const host = await run(startBelow);
		const body = JSON.stringify(initialize());

		const passed = await send(host.origin, {
			method: "POST",
			path: "/api/mcp",
			headers: headersOf(await token()),
			body,
		});

		expect([passed.status, await passed.text()]).toEqual([200, body]);
	});

	test("leaves other paths to others, and its handler's errors to the error handler", async () => {
		const host = await run(startBelow);
		const { method, params } = initialize();
		const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method, params: { ...params, fail: true } });

		const other = await send(host.origin, { method: "GET", path: "/api/other" });
		const failed = await send(host.origin, {
			method: "POST",
			path: "/api/mcp",
			headers: headersOf(await token()),
			body,
		});

		expect([other.status, await other.text()]).toEqual([200, "other"]);
		expect([failed.status, await failed.text()]).toEqual([500, "failed"]);
	});
});
