import { defineConfig } from "vitest/config";

export default defineConfig({
	// `mcp-resume-guard/…` is src/ here, as in tsconfig.json.
	resolve: { tsconfigPaths: true },
	test: {
		include: ["test/**/*.test.ts"],
		passWithNoTests: false,
		testTimeout: 20_000,
		hookTimeout: 60_000,
		// As long as a busy machine may take; what is right is there at once.
		expect: { poll: { timeout: 10_000 } },
		// Many wait for timers and processes: one worker less than there are cores would be idle half of the time.
		maxWorkers: 2,
	},
});
