import { expect, it } from "vitest";
import { startExample } from "../../examples/fastify/host.ts";

it("a token that is no good leaves one line in the log, which says why and has nothing of the token", async () => {
	const lines: string[] = [];
	const example = await startExample({
		logger: { level: "info", stream: { write: (line) => void lines.push(line) } },
	});
	try {
		const claims = { sub: "alice", client_id: "cli", aud: "https://mcp.example.com" };
		const expired = await example.authorizationServer.mint({ ...claims, exp: 1 });
		const foreign = await example.authorizationServer.mint({ ...claims, aud: "https://other.example" });
		for (const token of [expired, foreign]) {
			const response = await fetch(example.mcp, { headers: { authorization: `Bearer ${token}` } });
			expect(response.status).toBe(401);
		}
		const refused = lines.map((line) => JSON.parse(line)).filter(({ mcp }) => mcp !== undefined);
		expect(refused.map(({ mcp }) => [mcp.outcome, mcp.code])).toEqual([
			["reauthenticate", "token_expired"],
			["reauthenticate", "token_invalid"],
		]);
		expect(refused[1].mcp.reason).toMatch(/aud/);
		for (const token of [expired, foreign]) expect(lines.join("")).not.toContain(token.slice(-40));
	} finally {
		await example.close();
	}
});
