import type { PolicyData, TokenVerifierOptions } from "mcp-resume-guard";
import { startAuthorizationServer } from "./fastify/authorization-server.ts";
import { exampleData } from "./fastify/data.ts";
import { freePort } from "./fastify/port.ts";

/** What a recipe is started with. */
export interface Ingredients {
	readonly port: number;
	readonly data: PolicyData;
	readonly tokens: TokenVerifierOptions;
}

/**
 * Runs a recipe on loopback, on PORT (0 or unset: any), with an authorization server beside it, and prints where it is,
 * with a token to try it with.
 */
export async function runRecipe(start: (ingredients: Ingredients) => Promise<unknown>): Promise<void> {
	const port = Number(process.env.PORT) || (await freePort());
	const mcp = `http://127.0.0.1:${port}/mcp`;
	const { issuer, jwks, mint } = await startAuthorizationServer({ resources: () => true });
	await start({ port, data: exampleData(mcp), tokens: { issuer, jwks } });
	const token = await mint({ sub: "alice", client_id: "cli", aud: mcp });
	console.log(JSON.stringify({ mcp, issuer, token }));
}
