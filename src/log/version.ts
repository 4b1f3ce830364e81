import { promises } from "node:fs";

/** Of this package; `undefined` where it has been bundled into something else. */
export async function packageVersion(): Promise<string | undefined> {
	try {
		const { name, version } = JSON.parse(
			await promises.readFile(new URL("../../package.json", import.meta.url), "utf8"),
		) as Record<string, unknown>;
		return name === "mcp-resume-guard" && typeof version === "string" ? version : undefined;
	} catch {
		return undefined;
	}
}
