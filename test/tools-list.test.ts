import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, expect, it } from "vitest";
import { type Example, startExample } from "../examples/fastify/host.ts";

let example: Example;

afterEach(() => example.close());

async function listed(aud: string | string[]): Promise<string[]> {
	const token = await example.authorizationServer.mint({ sub: "alice", client_id: "cli", aud });
	const client = new Client({ name: "lister", version: "1.0.0" });
	const authProvider = { token: async () => token };
	await client.connect(new StreamableHTTPClientTransport(new URL(example.mcp), { authProvider }));
	const { tools } = await client.listTools();
	await client.close();
	return tools.map(({ name }) => name).sort();
}

const tool = (name: string) => `https://mcp.example.com/tools/${name}`;

it("tools/list leaves out the tools that the token does not cover", async () => {
	example = await startExample({ guard: { listCoveredTools: true } });
	expect(await listed(tool("search"))).toEqual(["search"]);
	expect(await listed([tool("search"), tool("fetch")])).toEqual(["fetch", "search"]);
	expect(await listed("https://mcp.example.com")).toEqual(["fetch", "search", "slow"]);
});

it("tools/list leaves out nothing unless it is asked to", async () => {
	example = await startExample();
	expect(await listed(tool("search"))).toEqual(["fetch", "search", "slow"]);
});
