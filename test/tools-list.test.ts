import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, expect, it } from "vitest";
import { type Example, startExample } from "../examples/fastify/host.ts";
import { createTools } from "../examples/fastify/tools.ts";
import { startHost } from "./e2e/support/host.ts";
import { type Asking, ask, openSession } from "./e2e/support/raw.ts";

let example: Example | undefined;

afterEach(() => example?.close());

async function listed({ authorizationServer, mcp }: Example, aud: string | string[]): Promise<string[]> {
	const token = await authorizationServer.mint({ sub: "alice", client_id: "cli", aud });
	const client = new Client({ name: "lister", version: "1.0.0" });
	const authProvider = { token: async () => token };
	await client.connect(new StreamableHTTPClientTransport(new URL(mcp), { authProvider }));
	const { tools } = await client.listTools();
	await client.close();
	return tools.map(({ name }) => name).sort();
}

const tool = (name: string) => `https://mcp.example.com/tools/${name}`;

it("tools/list leaves out the tools that the token does not cover", async () => {
	example = await startExample({ guard: { listCoveredTools: true } });
	expect(await listed(example, tool("search"))).toEqual(["search"]);
	expect(await listed(example, [tool("search"), tool("fetch")])).toEqual(["fetch", "search"]);
	expect(await listed(example, "https://mcp.example.com")).toEqual(["fetch", "search", "slow"]);
});

it("a list that is resumed has what the token covers that resumes it", async () => {
	const host = await startHost({ guard: { listCoveredTools: true }, createServer: createTools });
	const [wide, narrow] = [await host.mint(), await host.mint({ aud: tool("search") })];
	const session = await openSession(host, wide);
	const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
	const names = async (asking: Asking) => {
		const { frames } = await (await ask(host, { session, ...asking })).ended();
		const [{ result }] = frames.filter(({ data }) => data !== "").map(({ data }) => JSON.parse(data));
		return { names: result.tools.map(({ name }: { name: string }) => name).sort(), id: frames[0]?.id ?? "" };
	};
	const { names: asked, id: cursor } = await names({ token: wide, body: list });
	expect(asked).toEqual(["fetch", "search", "slow"]);
	expect((await names({ method: "GET", token: narrow, cursor })).names).toEqual(["search"]);
	expect((await names({ method: "GET", token: wide, cursor })).names).toEqual(asked);
});

it("tools/list leaves out nothing unless it is asked to", async () => {
	example = await startExample();
	expect(await listed(example, tool("search"))).toEqual(["fetch", "search", "slow"]);
});
