import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Calls with a folder that has these files, and removes it afterwards. */
export async function inTemporaryFolder<T>(
	files: readonly { readonly path: string; readonly content: string | Uint8Array }[],
	use: (folder: string) => Promise<T>,
): Promise<T> {
	const folder = mkdtempSync(join(tmpdir(), "test-"));
	try {
		for (const { path, content } of files) {
			mkdirSync(dirname(join(folder, path)), { recursive: true });
			writeFileSync(join(folder, path), content);
		}
		return await use(folder);
	} finally {
		rmSync(folder, { recursive: true });
	}
}
