import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { runRecipe } from "../recipe.ts";
import { createProxyHost } from "./host.ts";

// npx tsx examples/mcp-proxy/main.ts [command of a stdio server, with its arguments]
const given = process.argv.slice(2);
const example = [process.execPath, ...process.execArgv, fileURLToPath(new URL("stdio.ts", import.meta.url))];
const [command = "", ...args] = given.length > 0 ? given : example;

await runRecipe(async ({ port, ...options }) => {
	const { listener } = await createProxyHost(options, async () => {
		const client = new Client({ name: "proxy", version: "1.0.0" });
		await client.connect(new StdioClientTransport({ command, args }));
		return client;
	});
	createServer(listener).listen(port, "127.0.0.1");
});
