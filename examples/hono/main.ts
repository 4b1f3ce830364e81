import { serve } from "@hono/node-server";
import { createGates } from "../fastify/gates.ts";
import { createTools } from "../fastify/tools.ts";
import { runRecipe } from "../recipe.ts";
import { createHonoHost } from "./host.ts";

// npx tsx examples/hono/main.ts
await runRecipe(async ({ port, ...options }) => {
	const { app } = await createHonoHost({
		...options,
		connect: (transport) => createTools(createGates()).connect(transport),
	});
	serve({ fetch: app.fetch, hostname: "127.0.0.1", port });
});
