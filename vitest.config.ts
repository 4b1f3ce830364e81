import { defineConfig } from "vitest/config";

export default defineConfig({
	// `mcp-resume-guard/…` is src/ here, as in tsconfig.json.
	resolve: { tsconfigPaths: true },
	test: {
		include: ["test/**/*.test.ts"],
		passWithNoTests: false,
		testTimeout: 20_000,
		hookTimeout: 60_000,
	},
});
