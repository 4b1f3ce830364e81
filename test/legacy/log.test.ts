import { expect, test } from "vitest";
import { startHost } from "../e2e/support/host.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const PATHS = ["/messages", "/messages/", "/messages/more", "/sse", "/mcp"];

test.each(PATHS)(
	"a session id in the query of %s is in no line of the log, whatever the method",
	async (path) => {
		const host = await startHost();
		host.keepSecret("id-of-a-session");
		for (const method of METHODS) {
			const response = await fetch(`${host.origin}${path}?sessionId=id-of-a-session`, { method });
			expect([method, response.status < 500]).toEqual([method, true]);
			await response.body?.cancel();
		}
		expect(host.logged.length).toBeGreaterThan(METHODS.length);
	},
);

test("a browser may ask first at both endpoints, and is told what they have", async () => {
	const origin = "https://app.example.com";
	const host = await startHost({ guard: { allowedOrigins: [origin] } });
	for (const [path, methods] of Object.entries({ "/sse": "GET", "/messages": "POST" })) {
		const asked = await fetch(`${host.origin}${path}`, { method: "OPTIONS", headers: { origin } });
		expect(asked.status).toBe(204);
		expect(asked.headers.get("access-control-allow-origin")).toBe(origin);
		expect(asked.headers.get("access-control-allow-methods")).toBe(methods);
		const other = await fetch(`${host.origin}${path}`, { method: "PATCH", headers: { origin } });
		expect([other.status, other.headers.get("allow")]).toEqual([405, methods]);
	}
});
