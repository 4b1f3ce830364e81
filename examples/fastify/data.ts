import type { PolicyData } from "../../src/generated/types.ts";

/**
 * The policy data of the example. `https://mcp.example.com` stands for its tools, as the endpoint's own URL does, which
 * is what OAuth clients ask for. `mcp://srv` and `mcp://srv/v2` are names without coverage, to play rotations with.
 */
export function exampleData(endpoint: string): PolicyData {
	const tool = (name: string) => ({ aud: [`https://mcp.example.com/tools/${name}`], scope: [] });
	return {
		resources: [endpoint, "https://mcp.example.com", "mcp://srv", "mcp://srv/v2"],
		tools: { search: tool("search"), fetch: tool("fetch"), slow: tool("slow") },
		coverage: {
			[endpoint]: ["https://mcp.example.com/tools/*"],
			"https://mcp.example.com": ["https://mcp.example.com/tools/*"],
			"mcp://srv": ["https://mcp.example.com/tools/*"],
			"mcp://srv/v2": ["https://mcp.example.com/tools/*"],
		},
	};
}
