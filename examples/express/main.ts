import { createGates } from "../fastify/gates.ts";
import { createTools } from "../fastify/tools.ts";
import { runRecipe } from "../recipe.ts";
import { createExpressHost } from "./host.ts";

// npx tsx examples/express/main.ts
await runRecipe(async ({ port, ...options }) => {
	const { app } = await createExpressHost({
		...options,
		connect: (transport) => createTools(createGates()).connect(transport),
	});
	app.listen(port, "127.0.0.1");
});
