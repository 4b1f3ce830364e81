// One process for all: each has its ports, and they share what takes long to load.
for (const recipe of ["express", "hono", "mcp-proxy", "fastmcp", "mcp-lite", "fastify-mcp"]) {
	await import(`../../../examples/${recipe}/main.ts`);
}
