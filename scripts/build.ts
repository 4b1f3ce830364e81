import { spawnSync } from "node:child_process";
import { copyFileSync, readdirSync, rmSync } from "node:fs";

// src/ → dist/. What is generated as something else than TypeScript is copied beside what tsc makes.

rmSync("dist", { recursive: true, force: true });
spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
	stdio: "inherit",
});
for (const file of readdirSync("src/generated")) {
	if (file.endsWith(".ts") && !file.endsWith(".d.ts")) continue;
	copyFileSync(`src/generated/${file}`, `dist/generated/${file}`);
}
