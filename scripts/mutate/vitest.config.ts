import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { defineConfig, mergeConfig } from "vitest/config";
import base from "../../vitest.config.ts";

// The repository's tests with one file of src/ in another form: `$MUTANT_TEXT` is read where `$MUTANT_FILE` is.

const { MUTANT_FILE, MUTANT_TEXT } = process.env;
const file = MUTANT_FILE === undefined ? undefined : resolve(MUTANT_FILE);

export default mergeConfig(
	base,
	defineConfig({
		plugins: [
			{
				name: "mutant",
				enforce: "pre",
				load(id) {
					if (MUTANT_TEXT === undefined || id.split("?")[0] !== file) return undefined;
					return readFileSync(MUTANT_TEXT, "utf8");
				},
			},
		],
		test: { root: resolve(import.meta.dirname, "../.."), testTimeout: 120_000 },
	}),
);
