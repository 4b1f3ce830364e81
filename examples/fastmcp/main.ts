import { createServer } from "node:http";
import { runRecipe } from "../recipe.ts";
import { createFastMcpHost, type Definition } from "./host.ts";
import { startFastMcp } from "./inside.ts";

const tools: Definition["tools"] = [
	{ name: "search", description: "Finds documents.", execute: async () => "found" },
];
const definition: Definition = {
	name: "example",
	version: "1.0.0",
	tools,
	prompts: [],
	resources: [],
	resourcesTemplates: [],
	logger: console,
};

// npx tsx examples/fastmcp/main.ts [inside]
await runRecipe(async ({ port, ...options }) => {
	if (process.argv[2] === "inside") {
		await startFastMcp({ port, ...options }, (server) => server.addTools(tools));
	} else {
		const { listener } = await createFastMcpHost(options, definition);
		createServer(listener).listen(port, "127.0.0.1");
	}
});
