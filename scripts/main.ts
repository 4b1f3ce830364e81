import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** Whether a module is the program that was started, not an import of it. */
export function isMain(url: string): boolean {
	const [, program] = process.argv;
	return program !== undefined && url === pathToFileURL(realpathSync(program)).href;
}
